"""Faults of how a plugin is installed and imported."""

import signal
import sys

from .fault import Fault, deadly, harmless
from .installing import (
    twice,
    with_latin_entry_points,
    with_metadata,
    with_shadowed_copy,
)

PYTHON = ".".join(map(str, sys.version_info[:3]))

IMPORTING = {
    "missing_module": Fault(
        "its module is not there, only its metadata",
        ("ModuleNotFoundError: No module named 'missing_module'",),
        ("Its files are not there", "`pip uninstall missing_module`"),
    ),
    "missing_attribute": Fault(
        "its module lacks the object that the entry point names",
        ("AttributeError", "'missing_attribute' has no attribute 'plugin'"),
        value="missing_attribute:plugin",
    ),
    "missing_dependency": Fault(
        "it imports a module that is not installed",
        ("ModuleNotFoundError: No module named 'no_such_dependency'",),
        ("Install the missing module no_such_dependency",),
    ),
    "entry_point_malformed": Fault(
        "its entry point is no reference to a module",
        ("DiscoveryError: the value of its entry point, 'hooks of mine', is neither 'module' nor",),
        value="hooks of mine",
    ),
    "syntax_error": Fault("its module is no Python", ("SyntaxError", "(syntax_error.py, line 1)")),
    "python_newer": Fault(
        "it is written for a newer Python",
        ("SyntaxError", "it needs Python >=3.99, and this is " + PYTHON),
        ("Install a release of python_newer that supports this Python",),
        metadata="Requires-Python: >=3.99\n",
    ),
    "python_metadata": harmless(
        "its metadata asks for another Python, and it works on this one",
        metadata="Requires-Python: <3.2\n",
    ),
    "undefined_symbol": Fault(
        "its library lacks a symbol, being built for another PyTorch",
        ("ImportError: libwidget.so.1: undefined symbol: _ZN4flex3fooEv",),
        ("It was probably compiled against another release of PyTorch than 2.",),
    ),
    "exits_at_import": Fault("it calls sys.exit()", ("SystemExit: 0",)),
    "base_exception": Fault(
        "it raises something that is no Exception",
        ("Unusual: neither Exception nor KeyboardInterrupt",),
    ),
    "stop_iteration": Fault("it lets a StopIteration through", ("StopIteration",)),
    "generator_exit": Fault("it raises GeneratorExit", ("GeneratorExit: closed",)),
    "message_without_str": Fault(
        "the message of its exception cannot be made",
        ("OddError (its message cannot be shown: str() raised SystemExit)",),
    ),
    "message_str_subclass": Fault(
        "the message of its exception is an object with ideas of its own",
        ("OddError (its message cannot be shown: str() raised SystemExit)",),
    ),
    "message_huge": Fault(
        "the message of its exception has a million characters",
        ("RuntimeError: first line second line xxx", "... (1000023 characters)"),
    ),
    "message_empty": Fault("its exception has no message", ("RuntimeError",)),
    "message_control_characters": Fault(
        "the message of its exception controls the terminal, and is no text",
        (r"RuntimeError: \x1b[31mred\x00 and half a character: \ud83d",),
    ),
    "closes_stderr": Fault(
        "it closes sys.stderr and fails, so that nothing can be logged",
        ("OSError: nobody can read this",),
        logged=False,
    ),
    "keyboard_interrupt": deadly(
        "Ctrl-C is pressed while it is imported, which is for the user and not caught",
        -signal.SIGINT,
        "KeyboardInterrupt",
        error=("KeyboardInterrupt",),
    ),
    "prints_at_import": harmless("it prints"),
    "warns_at_import": harmless("it warns"),
    "warning_is_error": Fault(
        "it warns, and Python runs with -W error",
        ("UserWarning: the faulty device is deprecated",),
        options=("-W", "error"),
        status="available",
        reason=(),
        alone="ok",
    ),
    "circular_own": Fault(
        "its modules import each other in a circle",
        ("ImportError: cannot import name 'NAME' from partially initialized module",),
    ),
    "circular_torch": harmless(
        "its module imports torch, and torch is imported first",
        reason=("its hook module imports torch, which makes this command slow",),
    ),
    "circular_torch_later": Fault(
        "its module imports torch, and is imported before torch",
        ("is still being imported: circular_torch_later imports torch, and torch loads devhost",),
        ("Import torch inside the hooks of circular_torch_later, not at its top", "devhost.load()"),
        imports="circular_torch_later",
        status="available",
        reason=("its hook module imports torch",),
        alone="warning",
    ),
}

ENDING = {
    "never_ends": deadly(
        "its import never ends",
        None,
        "did not finish within 8 s, while importing never_ends",
        "(last line on stderr: going to sleep)",
    ),
    "probe_never_ends": deadly(
        "its probe never ends",
        None,
        "did not finish within 8 s, while calling devhost_probe()",
        "(last line on stderr: waiting for the driver)",
    ),
    "segfault_at_import": deadly(
        "its native part crashes while it is imported",
        -signal.SIGSEGV,
        "crashed with SIGSEGV while importing segfault_at_import",
    ),
    "abort_at_import": deadly(
        "its native part aborts while it is imported",
        -signal.SIGABRT,
        "crashed with SIGABRT while importing abort_at_import",
    ),
    "segfault_in_kernels": deadly(
        "its native part crashes while its kernels are loaded", -signal.SIGSEGV, status="available"
    ),
    "abort_in_runtime": deadly(
        "its native part aborts while its runtime is made", -signal.SIGABRT, status="available"
    ),
    "exits_for_good": deadly(
        "it ends the process with os._exit()",
        5,
        "ended the process with exit status 5 while importing exits_for_good",
    ),
}

METADATA = {
    "metadata_missing": harmless("its METADATA file is missing", install=with_metadata(None)),
    "metadata_nameless": harmless(
        "its METADATA has no name", install=with_metadata(b"Metadata-Version: 2.1\n")
    ),
    "metadata_latin": harmless(
        "its METADATA is not UTF-8",
        install=with_metadata(b"Metadata-Version: 2.1\nName: caf\xe9\nVersion: 1\n"),
    ),
    "entry_points_latin": Fault(
        "its list of entry points is not UTF-8, which torch itself cannot read",
        ending=1,
        error=("UnicodeDecodeError",),
        without={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        reason=("its entry points cannot be read, which breaks `import torch`", "reinstall it"),
        install=with_latin_entry_points,
    ),
    "two_distributions": Fault(
        "two distributions have a device of the same name",
        ("2 device plugins are installed", "(two_distributions)", "(two_distributions_too)"),
        state="not selected",
        status="available",
        reason=(),
        install=twice,
        alone="ok",
    ),
    "shadowed_copy": harmless(
        "a second copy of its distribution comes later on sys.path",
        status="shadowed",
        reason=("hidden by the copy in", "which comes first on sys.path"),
        install=with_shadowed_copy,
    ),
}
