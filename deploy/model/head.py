"""The head: from a ticket's vector u and a question's vector v to the logit that the answer is true.

All tickets' vectors lie in one narrow cone, and so do all questions': their means are subtracted inside the graph. An
MLP on (u, v, |u-v|, u*v) plus a scaled cosine, so that a question far from all training questions still falls back on
likeness of meaning. In ONNX it takes [tickets, 384] and [questions, 384] and gives [tickets, questions]: each ticket is
read once, and the questions' vectors can be kept. u and v enter through two matrices of their own, which leaves the
two products to be made for each pair.
"""

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

WIDTH = 384
SPREAD = WIDTH**0.5  # a unit vector's numbers are about 1/sqrt(384) in size; the layer expects about 1
HIDDEN = 320


class Head(nn.Module):
    def __init__(self, mean_u: torch.Tensor, mean_v: torch.Tensor) -> None:
        super().__init__()
        self.inner = nn.Linear(4 * WIDTH, HIDDEN)
        self.outer = nn.Linear(HIDDEN, 1)
        self.cosine = nn.Parameter(torch.tensor(4.0))
        self.drop_in, self.drop = nn.Dropout(0.1), nn.Dropout(0.3)
        self.register_buffer("mean_u", mean_u)
        self.register_buffer("mean_v", mean_v)

    def forward(self, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        u = nn.functional.normalize(u - self.mean_u, dim=1)
        v = nn.functional.normalize(v - self.mean_v, dim=1)
        product = u * v
        parts = torch.cat([u * SPREAD, v * SPREAD, (u - v).abs() * SPREAD, product * WIDTH], 1)
        hidden = nn.functional.gelu(self.inner(self.drop_in(parts)))
        return self.outer(self.drop(hidden)).squeeze(1) + self.cosine * product.sum(1)


def to_onnx(head: Head) -> onnx.ModelProto:
    """Inputs `state` [tickets, 384] and `question` [questions, 384]; output `logit` [tickets, questions]."""
    weight = head.inner.weight.detach().numpy().T
    scales = (SPREAD, SPREAD, SPREAD, float(WIDTH))
    of_u, of_v, of_gap, of_product = (
        np.ascontiguousarray(part * scale, np.float32)
        for part, scale in zip(np.split(weight, 4), scales, strict=True)
    )
    constants = {
        "mean_u": head.mean_u.numpy(),
        "mean_v": head.mean_v.numpy(),
        "tiny": np.float32(1e-9),
        "of_u": of_u,
        "of_v": of_v,
        "of_gap": of_gap,
        "of_product": of_product,
        "bias": head.inner.bias.detach().numpy(),
        "out": head.outer.weight.detach().numpy().T,
        "out_bias": head.outer.bias.detach().numpy(),
        "cosine": head.cosine.detach().numpy().reshape(1),
        "at_0": np.array([0], np.int64),
        "at_1": np.array([1], np.int64),
        "last": np.array([-1], np.int64),
    }
    node = helper.make_node
    nodes = [
        *_centred("state", "mean_u"),
        *_centred("question", "mean_v"),
        node("Unsqueeze", ["state_centred", "at_1"], ["u"]),
        node("Unsqueeze", ["question_centred", "at_0"], ["v"]),
        node("Sub", ["u", "v"], ["difference"]),
        node("Abs", ["difference"], ["gap"]),
        node("Mul", ["u", "v"], ["product"]),
        node("MatMul", ["state_centred", "of_u"], ["from_u_flat"]),
        node("Unsqueeze", ["from_u_flat", "at_1"], ["from_u"]),
        node("MatMul", ["question_centred", "of_v"], ["from_v"]),
        node("MatMul", ["gap", "of_gap"], ["from_gap"]),
        node("MatMul", ["product", "of_product"], ["from_product"]),
        node("Sum", ["from_u", "from_v", "from_gap", "from_product", "bias"], ["inner"]),
        node("Gelu", ["inner"], ["hidden"]),
        node("MatMul", ["hidden", "out"], ["out_flat"]),
        node("Squeeze", ["out_flat", "last"], ["out_pairs"]),
        node("ReduceSum", ["product", "last"], ["cosines"], keepdims=0),
        node("Mul", ["cosines", "cosine"], ["likeness"]),
        node("Sum", ["out_pairs", "out_bias", "likeness"], ["logit"]),
    ]
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "ticketgate yes/no head",
            [
                helper.make_tensor_value_info("state", TensorProto.FLOAT, ["tickets", WIDTH]),
                helper.make_tensor_value_info("question", TensorProto.FLOAT, ["questions", WIDTH]),
            ],
            [helper.make_tensor_value_info("logit", TensorProto.FLOAT, ["tickets", "questions"])],
            [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=10,
        producer_name="ticketgate deploy/model",
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _centred(name: str, mean: str) -> list[onnx.NodeProto]:
    """`name`_centred: less the mean, of length 1."""
    node = helper.make_node
    return [
        node("Sub", [name, mean], [f"{name}_moved"]),
        node("ReduceL2", [f"{name}_moved", "last"], [f"{name}_length"], keepdims=1),
        node("Max", [f"{name}_length", "tiny"], [f"{name}_positive"]),
        node("Div", [f"{name}_moved", f"{name}_positive"], [f"{name}_centred"]),
    ]
