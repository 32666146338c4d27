"""bge-small-en-v1.5 in torch: its weights as its publisher's ONNX file has them, and the layers they belong to."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from encoder import EPSILON, HEADS, HIDDEN, KEPT, MASKED
from onnx import numpy_helper
from torch import nn
from torch.nn import functional

LAYERS = 12


def load(path: Path) -> dict[str, np.ndarray]:
    """The weights by their names; matrices as [inputs, outputs]. The file names biases, and no matrices."""
    graph = onnx.load(path).graph
    values = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    taken: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            taken.setdefault(name, []).append(node)
    weights = {name: value for name, value in values.items() if not name.startswith("onnx::")}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in values:
            (add,) = (each for each in taken[node.output[0]] if each.op_type == "Add")
            (bias,) = (name for name in add.input if name in values)
            weights[bias.replace(".bias", ".weight")] = values[node.input[1]]
    return weights


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)
        self.ln1 = nn.LayerNorm(HIDDEN, EPSILON)
        self.inter = nn.Linear(HIDDEN, 4 * HIDDEN)
        self.output = nn.Linear(4 * HIDDEN, HIDDEN)
        self.ln2 = nn.LayerNorm(HIDDEN, EPSILON)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = hidden.shape
        query, key, value = (
            self.qkv(hidden).view(batch, tokens, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        hidden = self.ln1(hidden + self.out(mixed.transpose(1, 2).reshape(batch, tokens, HIDDEN)))
        return self.ln2(hidden + self.output(functional.gelu(self.inter(hidden))))

    def first(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """What forward gives for the first token alone: [texts, HIDDEN]."""
        batch, tokens, _ = hidden.shape
        first, weight, bias = hidden[:, :1], self.qkv.weight, self.qkv.bias
        heads = HEADS, HIDDEN // HEADS
        query = (
            functional.linear(first, weight[:HIDDEN], bias[:HIDDEN]).view(batch, 1, *heads).transpose(1, 2)
        )
        both = functional.linear(hidden, weight[HIDDEN:], bias[HIDDEN:]).view(batch, tokens, 2, *heads)
        key, value = both.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask.to(query.dtype))
        first = self.ln1(first + self.out(mixed.transpose(1, 2).reshape(batch, 1, HIDDEN)))
        return self.ln2(first + self.output(functional.gelu(self.inter(first))))[:, 0]


class Bert(nn.Module):
    """Some of the layers, in their order."""

    def __init__(self, weights: dict[str, np.ndarray], layers: Sequence[int]) -> None:
        super().__init__()
        self.words = nn.Embedding.from_pretrained(_tensor(weights["embeddings.word_embeddings.weight"]))
        # Only one segment is ever used, so its vector is part of the position's.
        places = weights["embeddings.position_embeddings.weight"]
        self.pos = nn.Parameter(_tensor(places + weights["embeddings.token_type_embeddings.weight"][0]))
        self.ln = nn.LayerNorm(HIDDEN, EPSILON)
        _copy_norm(self.ln, weights, "embeddings.LayerNorm")
        self.layers = nn.ModuleList(_layer(weights, f"encoder.layer.{number}") for number in layers)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """[texts, tokens] to [texts, tokens, HIDDEN]."""
        return self.ln(self.words(ids) + self.pos[: ids.shape[1]])


class Student(Bert):
    """The kept layers, with an affine map in the place of those between."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        super().__init__(weights, KEPT)
        self.map = nn.Linear(HIDDEN, HIDDEN)


def attention_bias(mask: torch.Tensor) -> torch.Tensor:
    """[texts, 1, 1, tokens]."""
    return torch.zeros(mask.shape).masked_fill(mask == 0, MASKED)[:, None, None, :]


def _layer(weights: dict[str, np.ndarray], name: str) -> Layer:
    layer, own = Layer(), f"{name}.attention.self"
    parts = ("query", "key", "value")
    layer.qkv.weight.data = _tensor(np.concatenate([weights[f"{own}.{part}.weight"].T for part in parts]))
    layer.qkv.bias.data = _tensor(np.concatenate([weights[f"{own}.{part}.bias"] for part in parts]))
    for module, key in (
        (layer.out, f"{name}.attention.output.dense"),
        (layer.inter, f"{name}.intermediate.dense"),
        (layer.output, f"{name}.output.dense"),
    ):
        module.weight.data = _tensor(weights[f"{key}.weight"].T)
        module.bias.data = _tensor(weights[f"{key}.bias"])
    _copy_norm(layer.ln1, weights, f"{name}.attention.output.LayerNorm")
    _copy_norm(layer.ln2, weights, f"{name}.output.LayerNorm")
    return layer


def _copy_norm(norm: nn.LayerNorm, weights: dict[str, np.ndarray], name: str) -> None:
    norm.weight.data, norm.bias.data = _tensor(weights[f"{name}.weight"]), _tensor(weights[f"{name}.bias"])


def _tensor(value: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(value, np.float32, order="C"))
