"""Autocast on a device whose plugin lists operators and leaves the casts to the host."""

import pytest


@pytest.fixture(scope="module")
def run(minimal):
    minimal(
        """
        import warnings
        ones = lambda dtype=None, *size: torch.ones(*(size or (2, 2)), dtype=dtype).to("minimal")
        single, half, double = ones(), ones(torch.float16), ones(torch.float64)

        def cast(function, *tensors, **options):
            with torch.autocast("minimal", **options):
                return str(function(*tensors).dtype)
        """
    )
    return minimal


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        # In lower precision, whatever floating-point type comes in
        ("torch.mm, single, single", "torch.bfloat16"),
        ("torch.mm, half, single", "torch.bfloat16"),
        ("torch.ops.minimal.halve, single", "torch.bfloat16"),
        # In float32
        ("torch.exp, half", "torch.float32"),
        ("lambda x: x.softmax(1), half", "torch.float32"),
        # In the widest of their types
        ("torch.atan2, half, half", "torch.float16"),
        ("torch.atan2, half, single", "torch.float32"),
        ("lambda *x: torch.cat(x), half, single", "torch.float32"),
        ("lambda *x: torch.cat(x), half, half", "torch.float16"),
        # float64 is never cast, and other operators are left alone
        ("torch.mm, double, double", "torch.float64"),
        ("torch.exp, double", "torch.float64"),
        ("torch.add, half, half", "torch.float16"),
        ("torch.add, single, single", "torch.float32"),
    ],
)
def test_types_under_autocast(run, call, dtype):
    assert run(f"cast({call})") == dtype


def test_the_type_asked_for(run):
    assert run("cast(torch.mm, single, single, dtype=torch.float16)") == "torch.float16"
    assert run("cast(torch.mm, single, single, enabled=False)") == "torch.float32"
    assert run("str(torch.mm(single, single).dtype)") == "torch.float32"


def test_values_are_those_of_the_operator_at_the_lower_precision(run):
    run(
        """
        x = torch.tensor([[1.0, 1 / 3], [2.0, 1 / 7]])
        with torch.autocast("minimal"):
            y = torch.mm(x.to("minimal"), x.to("minimal"))
        z = torch.mm(x.bfloat16(), x.bfloat16())
        """
    )
    assert run("torch.equal(y.cpu(), z)") is True


def test_regions_nest(run):
    assert run(
        """
        types = []
        note = lambda: types.append(str(torch.mm(single, single).dtype))
        with torch.autocast("minimal", dtype=torch.float16):
            note()
            with torch.autocast("minimal", enabled=False): note()
            with torch.autocast("minimal", dtype=torch.bfloat16): note()
            note()
        note()
        types
        """
    ) == ["torch.float16", "torch.float32", "torch.bfloat16", "torch.float16", "torch.float32"]


def test_gradients_have_the_type_of_their_tensor(run):
    run(
        """
        weight = ones().requires_grad_()
        data = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).to("minimal")
        with torch.autocast("minimal"):
            out = torch.mm(weight, data)
        grad, = torch.autograd.grad(out, weight, ones(torch.bfloat16))
        """
    )
    assert run("[str(out.dtype), str(grad.dtype)]") == ["torch.bfloat16", "torch.float32"]
    assert run("grad.cpu().tolist()") == [[3.0, 7.0], [3.0, 7.0]]


def test_other_devices_are_left_alone(run):
    assert run("cast(torch.mm, torch.ones(2, 2), torch.ones(2, 2))") == "torch.float32"


def test_an_unsupported_type_warns_once_and_runs_in_full_precision(run):
    run(
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dtype = cast(torch.mm, single, single, dtype=torch.float64)
        """
    )
    assert run("dtype") == "torch.float32"
    (warning,) = run("[[w.category.__name__, str(w.message)] for w in caught]")
    assert warning == [
        "UserWarning",
        "In minimal autocast, but the target dtype is not supported. Disabling autocast.\n"
        "minimal Autocast only supports dtypes of torch.bfloat16, torch.float16 (and not "
        "torch.float64, which was asked for) currently.",
    ]


def test_what_torch_says_about_autocast(run):
    assert run("torch.amp.is_autocast_available('minimal')") is True
    assert run("str(torch.get_autocast_dtype('minimal'))") == "torch.bfloat16"
    assert run("torch.is_autocast_enabled('minimal')") is False
    assert run(
        """
        with torch.autocast("minimal", dtype=torch.float16):
            inside = torch.is_autocast_enabled("minimal"), torch.get_autocast_dtype("minimal")
        [str(answer) for answer in inside]
        """
    ) == ["True", "torch.float16"]
    run("torch.set_autocast_dtype('minimal', torch.float16)")
    assert run("cast(torch.mm, single, single)") == "torch.float16"
    run("torch.set_autocast_dtype('minimal', torch.bfloat16)")


def test_supported_types_are_a_list(run):
    assert run("list(map(str, m.get_amp_supported_dtype()))") == ["torch.bfloat16", "torch.float16"]
    assert run("m.get_amp_supported_dtype() == [torch.bfloat16, torch.float16]") is True
    assert run("torch.float64 in m.get_amp_supported_dtype()") is False
    assert run("[m.is_bf16_supported(), len(m.get_amp_supported_dtype())]") == [True, 2]


def test_autocast_before_the_first_tensor(site):
    site.add_package("minimal")
    result = site.python(
        """
        import torch
        print(torch.minimal.is_initialized())
        with torch.autocast("minimal"):
            x = torch.ones(2, 2).to("minimal")
            print(torch.mm(x, x).dtype, (x + x).dtype)
        """
    )
    assert (result.stdout, result.stderr) == ("False\ntorch.bfloat16 torch.float32\n", "")


def test_autocast_switched_on_by_hand_and_from_many_threads(site):
    site.add_package("minimal")
    result = site.python(
        """
        import threading, torch
        start, seen = threading.Barrier(8), []
        def work():
            torch.set_autocast_enabled("minimal", True)
            torch.set_autocast_dtype("minimal", torch.bfloat16)
            start.wait()
            x = torch.ones(2, 2).to("minimal")
            seen.append(torch.mm(x, x).dtype)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(set(seen), len(seen))
        """
    )
    assert (result.stdout, result.stderr) == ("{torch.bfloat16} 8\n", "")


def test_casts_of_operators_that_are_defined_by_a_user(run):
    run(
        """
        @torch.library.custom_op("amptest::same", mutates_args=())
        def same(x: torch.Tensor) -> torch.Tensor:
            return x + x
        same.register_autocast("minimal", torch.float16)
        """
    )
    assert run("cast(same, single)") == "torch.float16"
    assert run("str(same(single).dtype)") == "torch.float32"


def test_custom_autograd_functions(run):
    assert run(
        """
        class Product(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="minimal", cast_inputs=torch.float32)
            def forward(ctx, x):
                ctx.inside = torch.is_autocast_enabled("minimal")
                seen.append([str(x.dtype), ctx.inside])
                return x * 2.0
            @staticmethod
            @torch.amp.custom_bwd(device_type="minimal")
            def backward(ctx, grad):
                return grad * 2.0
        seen = []
        with torch.autocast("minimal"):
            Product.apply(half)
        seen
        """
    ) == [["torch.float32", False]]


def test_a_device_without_the_hook_says_that_it_has_no_autocast(site, raises):
    site.add_package("sound")
    with site.interpreter() as run:
        run("import torch")
        with raises("AssertionError: Tried to use AMP with the `faulty` backend"):
            run("torch.autocast('faulty')")
