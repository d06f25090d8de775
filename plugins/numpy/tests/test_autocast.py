"""Autocast through the lists that the plugin gives to the host."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        *((e, "bfloat16") for e in ("a @ b.T", "torch.addmm(square, a, b.T)", "F.linear(a, b)")),
        *((e, "bfloat16") for e in ("batch @ batch.mT", "F.conv1d(batch, batch[:, :, :2])")),
        ("F.conv_transpose1d(batch, a[:, None])", "bfloat16"),
        ("F.scaled_dot_product_attention(batch, batch, batch)", "bfloat16"),
        *((e, "float32") for e in ("a.exp()", "a.bfloat16().exp()", "a.bfloat16().sum()")),
        *((e, "float32") for e in ("F.softmax(a.half(), 1)", "F.cross_entropy(a.half(), index)")),
        *((e, "float32") for e in ("F.layer_norm(a.bfloat16(), (4,))", "F.gelu(a.half())")),
        *((e, "float32") for e in ("torch.cat((a, b.bfloat16()))", "torch.atan2(a, b.half())")),
        *((e, "float32") for e in ("a + b", "a.relu()", "a * b.bfloat16()")),
        *((e, "bfloat16") for e in ("(a @ b.T).relu()", "a.bfloat16() + 1")),
        ("a.double() @ b.double().T", "float64"),
        ("index + 1", "int64"),
    ],
)
def test_results_have_the_type_of_the_lists(device, expression, dtype):
    found = device(
        f"""
        with torch.autocast("ndarray"):
            found = eval({expression!r}, on("ndarray", inputs(torch.float32))).dtype
        found
        """
    )
    assert found == f"torch.{dtype}"


def test_values_are_rounded_to_the_lower_precision(device):
    assert (
        device(
            """
        a, b = torch.randn(16, 16), torch.randn(16, 16)
        with torch.autocast("ndarray", dtype=torch.float16):
            product = a.ndarray() @ b.ndarray()
        expected = (a.half().float() @ b.half().float()).half()
        torch.testing.assert_close(product.cpu(), expected)
        product.dtype
        """
        )
        == "torch.float16"
    )


def test_gradients_go_back_to_float32(device):
    assert device(
        """
        layer = nn.Linear(4, 2).to("ndarray")
        with torch.autocast("ndarray"):
            loss = layer(torch.ones(3, 4, device="ndarray")).sum()
        loss.backward()
        [loss.dtype, layer.weight.grad.dtype, layer.weight.grad.tolist()]
        """
    ) == ["torch.float32", "torch.float32", [[3, 3, 3, 3], [3, 3, 3, 3]]]


def test_grad_scaler(device):
    assert device(
        """
        scaler = torch.amp.GradScaler("ndarray", init_scale=8.0)
        layer = nn.Linear(2, 1, bias=False).to("ndarray")
        before = layer.weight.detach().clone()
        optimizer = torch.optim.SGD(layer.parameters(), 1.0)
        scaler.scale(layer(torch.ones(1, 2, device="ndarray")).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        step = (before - layer.weight).tolist()
        optimizer.zero_grad()
        scaler.scale(layer(torch.full((1, 2), float("inf"), device="ndarray")).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        [step, scaler.get_scale(), (before - layer.weight).tolist()]
        """
    ) == [[[1, 1]], 4.0, [[1, 1]]]
