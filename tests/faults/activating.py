"""Faults of what a plugin says and does once it is imported."""

from .fault import NO_KERNEL, NO_MODULE, Fault, at_activation, harmless
from .installing import as_named, beside_a_foreign_backend, beside_an_extension, with_native_file

IDENTITY = {
    "hook_misspelled": Fault(
        "the name of a hook is misspelled",
        ("devhost_kernel() is no hook of devhost, did you mean devhost_kernels?",),
        ("1 problem:",),
    ),
    "hook_unmarked": Fault(
        "a hook lacks the mark @devhost.hookimpl",
        ("devhost_probe() is not marked with @devhost.hookimpl",),
        ("1 problem:",),
    ),
    "hook_missing": Fault(
        "required hooks are missing",
        (
            "the required hook devhost_runtime() is missing",
            "the required hook devhost_kernels() is missing",
        ),
        ("2 problems:",),
    ),
    "hook_of_extensions": Fault(
        "it implements a hook that is for extensions",
        ("devhost_select() is for extensions",),
        ("1 problem:",),
    ),
    "signature_wrong": Fault(
        "hooks have arguments that they are not given",
        (
            "devhost_kernels() has an unknown argument 'kernel_registry'; expected "
            "devhost_kernels(registry)",
            "devhost_probe() takes *arguments, which hooks are never given; expected "
            "devhost_probe()",
        ),
        ("2 problems:",),
    ),
    "many_problems": Fault(
        "several things are wrong at once: all are named",
        ("the required hook devhost_runtime() is missing",),
        (
            "4 problems:",
            "DeviceInfo.name is 'cuda' but the entry point is named 'faulty'",
            "version 7 of the hook specs",
            "it needs torch 99.0 or newer",
        ),
    ),
    "device_raises": Fault(
        "devhost_device() raises", ("OSError: the device hook gives up",), ("devhost_device()",)
    ),
    "device_returns_none": Fault(
        "devhost_device() returns nothing",
        ("devhost_device() returned NoneType, expected devhost.DeviceInfo",),
    ),
    "device_returns_dict": Fault(
        "devhost_device() returns the wrong type",
        ("devhost_device() returned dict, expected devhost.DeviceInfo",),
    ),
    "device_field_type": Fault(
        "what it says about itself has the wrong types",
        ("TypeError: DeviceInfo.priority must be an int, not str",),
    ),
    "device_other_name": Fault(
        "it calls its device otherwise than its entry point does",
        ("DeviceInfo.name is 'flawless' but the entry point is named 'faulty'",),
    ),
    "name_malformed": Fault(
        "its device has a name that PyTorch cannot parse",
        ("torch.device() cannot parse it", "lower-case letters a to z and underscores"),
        install=as_named("faulty2"),
    ),
    "name_of_torch": at_activation(
        "its device has a name that torch uses already",
        "'nn' cannot be the name of a device: torch.nn exists already",
        has_module=True,
        install=as_named("nn"),
    ),
    "spec_newer": Fault(
        "it is written for a newer version of the hook specs",
        ("version 2 of the hook specs and this devhost has version 1: update devhost",),
    ),
    "torch_too_old": Fault(
        "it needs a newer PyTorch", ("it needs torch 99.0 or newer, and this is torch 2.",)
    ),
    "torch_too_new": Fault(
        "it needs an older PyTorch", ("it supports torch before 2.0, and this is torch 2.",)
    ),
    "torch_abi": Fault(
        "its native part is built for another PyTorch",
        ("its native part was built for torch 2.1.2, and this is torch 2.",),
    ),
    "torch_version_text": Fault(
        "the PyTorch it needs is no version", ("DeviceInfo.torch_min 'newest' is not a version",)
    ),
    "probe_raises": Fault("its probe raises", ("OSError: the driver does not answer",)),
    "probe_returns_bool": Fault(
        "its probe returns the wrong type",
        ("devhost_probe() returned bool, expected devhost.ProbeResult",),
    ),
    "probe_without_reason": Fault(
        "its probe finds no hardware and does not say why",
        ("ValueError: ProbeResult: available=False needs a reason",),
    ),
    "unavailable": Fault(
        "it is sound, and its hardware is not there",
        state="unavailable",
        first_use=(
            "DeviceUnavailableError: device 'faulty' cannot be used: its plugin 'faulty' "
            "(unavailable 1.0, ",
            "is installed, but the device is not available: no such hardware in this machine",
        ),
        slot="faulty",
        status="unavailable",
        reason=("no such hardware in this machine",),
    ),
}

ACTIVATING = {
    "not_a_library": at_activation(
        "its native module is no library",
        "failed while calling devhost_kernels(): ImportError",
        "not_a_library_native",
        install=with_native_file("not_a_library_native.so"),
    ),
    "native_of_other_python": at_activation(
        "its native module is compiled for another Python",
        "ModuleNotFoundError: No module named 'other_python_package._C'",
        log=("_C.cpython-39-x86_64-linux-gnu.so is compiled for another Python",),
        install=with_native_file("other_python_package/_C.cpython-39-x86_64-linux-gnu.so"),
    ),
    "kernels_raise": at_activation(
        "devhost_kernels() raises after registering kernels",
        "failed while calling devhost_kernels(): OSError: out of memory half-way",
    ),
    "kernels_exit": at_activation(
        "devhost_kernels() calls sys.exit() after registering kernels",
        "failed while calling devhost_kernels(): SystemExit: 3",
    ),
    "kernels_composite": at_activation(
        "a kernel would take the derivative of an operator away",
        "aten::to.dtype",
        "CompositeImplicitAutograd",
        "AutogradPrivateUse1",
    ),
    "kernels_unknown_operator": at_activation(
        "a kernel is for an operator that does not exist",
        "there is no operator aten::addd.Tensor; did you mean aten::add",
    ),
    "kernels_twice": at_activation(
        "an operator has two kernels", "aten::add.Tensor has two kernels for PrivateUse1"
    ),
    "kernels_return": harmless("devhost_kernels() returns something, which nobody asked for"),
    "runtime_raises": at_activation(
        "devhost_runtime() raises",
        "failed while calling devhost_runtime(): OSError: the runtime hook gives up",
    ),
    "runtime_none": at_activation(
        "devhost_runtime() returns nothing", "devhost_runtime() returned None"
    ),
    "runtime_members": at_activation(
        "runtime, generators and autocast policy lack members or have the wrong types",
        "what devhost_runtime() returned has no function device_count()",
        "what devhost_runtime() returned has no function exchange_device()",
        "the runtime's module_members must be a mapping",
        "what devhost_rng() returned has no function default_generator()",
        "devhost_amp() returned list, expected devhost.AmpPolicy",
        log=("5 problems:",),
    ),
    "module_members_raise": at_activation(
        "the runtime's module_members raises", "OSError: not now"
    ),
    "rng_raises": at_activation(
        "devhost_rng() raises", "failed while calling devhost_rng(): OSError: the rng hook gives up"
    ),
    "rng_integer": at_activation(
        "devhost_rng() returns the wrong type",
        "what devhost_rng() returned has no function default_generator()",
    ),
    "amp_raises": at_activation(
        "devhost_amp() raises", "failed while calling devhost_amp(): OSError: the amp hook gives up"
    ),
    "amp_integer": at_activation(
        "autocast is to use integers",
        "AmpPolicy.supported_dtypes has torch.int8, which is no floating-point",
    ),
    "amp_operators": at_activation(
        "its lists for autocast name operators that cannot be cast",
        "AmpPolicy.lower_precision names aten::matmull, and there is no such operator; did you "
        "mean aten::matmul or ",
        "AmpPolicy.lower_precision names mm, and there is no such operator",
        "AmpPolicy.lower_precision names aten::mv, which has a kernel for AutocastPrivateUse1",
        "AmpPolicy.float32 names aten::softmax, and there is no such operator; did you mean "
        "aten::softmax.",
        "AmpPolicy.promote names aten::add_.Tensor, which writes to its argument self",
        "AmpPolicy.promote names aten::add.out, which writes to its argument out",
        log=("6 problems:",),
    ),
    "amp_named_twice": at_activation(
        "its lists for autocast name an operator twice",
        "ValueError: AmpPolicy names aten::mm twice, in lower_precision and in promote",
    ),
    "activated_raises": harmless(
        "devhost_activated() raises, once the device is there",
        warning=("devhost_activated() failed after 'faulty'", "OSError: nobody to tell"),
        alone="error",
    ),
    "select_integer": Fault(
        "an extension's devhost_select() returns the wrong type",
        ("an extension's devhost_select returned 7; it must return the name of an installed",),
        state="not selected",
        status="available",
        reason=(),
        install=beside_an_extension,
        alone="ok",
    ),
    "init_raises": harmless(
        "its driver does not start when the device is used",
        first_use=("OSError: the driver does not start",),
        alone="error",
    ),
}

PROCESS = {
    "changes_environment": harmless(
        "it sets an environment variable, as a driver may need", kept={"FAULTY": "1"}
    ),
    "changes_directory": harmless(
        "it changes the working directory", warning=("the working directory (put back)",)
    ),
    "changes_signals": harmless(
        "it installs signal handlers", warning=("the handlers of SIGINT, SIGTERM (put back)",)
    ),
    "changes_dtype": harmless(
        "it changes the default dtype", warning=("the default dtype (put back)",)
    ),
    "changes_device": harmless(
        "it changes the default device", warning=("the default device (put back)",)
    ),
    "changes_logging": harmless(
        "it configures the root logger", warning=("the root logger (put back)",)
    ),
    "starts_thread": harmless(
        "it starts a thread",
        warning=("the running threads: started heartbeat (which go on)",),
        kept={"threads": ["MainThread", "heartbeat"]},
    ),
    "changes_everything": Fault(
        "it changes all of that, and then fails",
        ("OSError: after all that",),
        warning=(
            "the environment variables FAULTY, HOME (put back); sys.path (put back); the warning "
            "filters (put back); the working directory (put back); the handlers of SIGINT (put "
            "back); the root logger (put back); the default dtype (put back); the default device "
            "(put back)",
        ),
    ),
}

GRABBED = "took PyTorch's slot by itself while {}: it now belongs to 'grabbed'"
LISTED_GRABBED = ("it took PyTorch's slot by itself", "now belongs to 'grabbed'")
SLOT = {
    "slot_taken": Fault(
        "another package has taken the slot",
        ("stays inactive", "it is taken by 'foreign' (", "Uninstall one of them"),
        slot="foreign",
        status="available",
        reason=(),
        install=beside_a_foreign_backend,
        alone="ok",
    ),
    "renames_rightly": harmless(
        "it renames the slot itself, to its own name",
        warning=(
            "has renamed PyTorch's slot itself",
            "remove the call of rename_privateuse1_backend()",
        ),
        reason=("its hook module imports torch",),
    ),
    "renames_and_fails": Fault(
        "it renames the slot itself, and then fails",
        ("OSError: after the rename",),
        first_use=NO_MODULE,
        slot="faulty",
    ),
    "renames_at_import": Fault(
        "it gives the slot another name while it is imported",
        (GRABBED.format("importing renames_at_import"),),
        ("Remove the plugin's calls of rename_privateuse1_backend()",),
        slot="grabbed",
        reason=LISTED_GRABBED,
    ),
    "renames_in_device": Fault(
        "it gives the slot another name in devhost_device()",
        (GRABBED.format("checking it"),),
        slot="grabbed",
        reason=LISTED_GRABBED,
    ),
    "renames_in_probe": Fault(
        "it gives the slot another name in devhost_probe()",
        (GRABBED.format("calling devhost_probe()"),),
        slot="grabbed",
        reason=LISTED_GRABBED,
    ),
    **{
        f"renames_in_{hook}": at_activation(
            f"it gives the slot another name in devhost_{hook}()",
            GRABBED.format(f"calling devhost_{hook}()"),
            slot="grabbed",
        )
        for hook in ("kernels", "runtime", "rng", "amp")
    },
    "registers_itself": at_activation(
        "it registers its own device module",
        "took PyTorch's slot by itself while calling devhost_kernels(): it now belongs to 'faulty'",
        first_use=NO_KERNEL,
        has_module=True,
        slot="faulty",
    ),
    "generates_methods": at_activation(
        "it generates the methods of its device itself",
        "took PyTorch's slot by itself while calling devhost_runtime(): it now belongs to 'faulty'",
        first_use=NO_MODULE,
        slot="faulty",
    ),
}
