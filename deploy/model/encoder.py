"""Build the encoder's ONNX graph from all-MiniLM-L6-v2's safetensors.

Promise: inputs `input_ids` and `attention_mask` (int64 [batch, tokens]), output `vector`
(float32 [batch, 384], mean over the tokens of the mask, length 1).

Weights, and only weights, are int8: one scale a column for matrices, one a row for the word table.
Activations stay fp32, so that no text's answer can depend on what else is in its batch: dynamic int8
takes its activation scale from the whole batch, and moved probabilities by up to 0.39
(deploy/model/README.md). The DequantizeLinear nodes fold into constants when a session opens with
`session.disable_quant_qdq=1`, and it then runs at fp32 speed. The word table is looked up first and
scaled after, so that its 47 MB never exist as floats.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

HIDDEN, HEADS, LAYERS, EPSILON = 384, 12, 6, 1e-12
WINDOW = 256  # the model's own max_seq_length; it has learnt nothing of longer texts
MASKED = -1e9  # finite: -inf would turn a row that is all padding into NaN


class Graph:
    """Collects nodes and initialisers; every method gives back the name of what it made."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initialisers: list[onnx.TensorProto] = []

    def node(self, operator: str, *inputs: str, output: str | None = None, **attributes: object) -> str:
        name = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, name: str, value: np.ndarray) -> str:
        if all(known.name != name for known in self.initialisers):
            self.initialisers.append(numpy_helper.from_array(value, name))
        return name

    def integers(self, *values: int) -> str:
        name = "int_" + "_".join(str(v) for v in values)
        return self.constant(name, np.array(values, np.int64))

    def matrix(self, name: str, weight: np.ndarray) -> str:
        """An int8 matrix [inputs, outputs] with one scale an output."""
        scale = np.maximum(np.abs(weight).max(0), 1e-8).astype(np.float32) / 127
        quantised = np.clip(np.round(weight / scale), -127, 127).astype(np.int8)
        zero = np.zeros(weight.shape[1], np.int8)
        names = (
            self.constant(f"{name}.int8", quantised),
            self.constant(f"{name}.scale", scale),
            self.constant(f"{name}.zero", zero),
        )
        return self.node("DequantizeLinear", *names, output=name, axis=1)

    def linear(self, source: str, name: str, weight: np.ndarray, bias: np.ndarray) -> str:
        product = self.node("MatMul", source, self.matrix(f"{name}.weight", weight))
        return self.node("Add", product, self.constant(f"{name}.bias", bias))

    def normalise(self, source: str, name: str, weights: dict[str, np.ndarray]) -> str:
        return self.node(
            "LayerNormalization",
            source,
            self.constant(f"{name}.weight", weights[f"{name}.weight"]),
            self.constant(f"{name}.bias", weights[f"{name}.bias"]),
            axis=-1,
            epsilon=EPSILON,
        )


def build(safetensors: Path) -> onnx.ModelProto:
    """The whole encoder as one ONNX model."""
    weights = {k: v for k, v in load_file(safetensors).items() if not k.endswith("position_ids")}
    graph = Graph()
    hidden = _embed(graph, weights)
    bias = _attention_bias(graph)
    for layer in range(LAYERS):
        hidden = _layer(graph, f"encoder.layer.{layer}", hidden, bias, weights)
    _pool(graph, hidden)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "all-MiniLM-L6-v2, int8 weights",
            [
                helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"]),
                helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "tokens"]),
            ],
            [helper.make_tensor_value_info("vector", TensorProto.FLOAT, ["batch", HIDDEN])],
            graph.initialisers,
        ),
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=10,
        producer_name="ticketgate deploy/model",
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _embed(graph: Graph, weights: dict[str, np.ndarray]) -> str:
    words = weights["embeddings.word_embeddings.weight"]
    scale = np.maximum(np.abs(words).max(1, keepdims=True), 1e-8).astype(np.float32) / 127
    table = graph.constant("words.int8", np.clip(np.round(words / scale), -127, 127).astype(np.int8))
    scales = graph.constant("words.scale", scale)
    rows = graph.node("Cast", graph.node("Gather", table, "input_ids"), to=TensorProto.FLOAT)
    embedded = graph.node("Mul", rows, graph.node("Gather", scales, "input_ids"))
    # Only one segment is ever used, so its vector is part of the position's.
    positions = weights["embeddings.position_embeddings.weight"][:WINDOW]
    segment = weights["embeddings.token_type_embeddings.weight"][0]
    tokens = graph.node("Shape", "input_ids", start=1, end=2)
    placed = graph.node(
        "Slice",
        graph.constant("positions", positions + segment),
        graph.integers(0),
        tokens,
        graph.integers(0),
    )
    return graph.normalise(graph.node("Add", embedded, placed), "embeddings.LayerNorm", weights)


def _attention_bias(graph: Graph) -> str:
    """[batch, 1, 1, tokens]: 0 where there is a token, MASKED where there is padding."""
    mask = graph.node("Cast", "attention_mask", output="mask", to=TensorProto.FLOAT)
    padding = graph.node("Sub", graph.constant("one", np.float32(1)), mask)
    bias = graph.node("Mul", padding, graph.constant("masked", np.float32(MASKED)))
    return graph.node("Unsqueeze", bias, graph.integers(1, 2))


def _layer(graph: Graph, name: str, hidden: str, bias: str, weights: dict[str, np.ndarray]) -> str:
    attention = f"{name}.attention"
    parts = [(weights[f"{attention}.self.{p}.weight"].T, weights[f"{attention}.self.{p}.bias"]) for p in _QKV]
    # 1/sqrt(head size) is folded into the query: one multiplication less on every score.
    shrink = np.float32((HIDDEN // HEADS) ** -0.5)
    parts[0] = (parts[0][0] * shrink, parts[0][1] * shrink)
    joined = graph.linear(
        hidden, f"{name}.qkv", np.concatenate([w for w, _ in parts], 1), np.concatenate([b for _, b in parts])
    )
    split = [f"{name}.{p}" for p in _QKV]
    graph.nodes.append(helper.make_node("Split", [joined], split, axis=-1, num_outputs=3))
    heads = graph.integers(0, 0, HEADS, HIDDEN // HEADS)
    query, key, value = (graph.node("Reshape", p, heads) for p in split)
    query = graph.node("Transpose", query, perm=[0, 2, 1, 3])
    key = graph.node("Transpose", key, perm=[0, 2, 3, 1])
    value = graph.node("Transpose", value, perm=[0, 2, 1, 3])
    scores = graph.node("Softmax", graph.node("Add", graph.node("MatMul", query, key), bias), axis=-1)
    mixed = graph.node("Transpose", graph.node("MatMul", scores, value), perm=[0, 2, 1, 3])
    mixed = graph.node("Reshape", mixed, graph.integers(0, 0, HIDDEN))
    out = _named_linear(graph, mixed, f"{attention}.output.dense", weights)
    hidden = graph.normalise(graph.node("Add", out, hidden), f"{attention}.output.LayerNorm", weights)
    inner = graph.node("Gelu", _named_linear(graph, hidden, f"{name}.intermediate.dense", weights))
    out = _named_linear(graph, inner, f"{name}.output.dense", weights)
    return graph.normalise(graph.node("Add", out, hidden), f"{name}.output.LayerNorm", weights)


_QKV = ("query", "key", "value")


def _named_linear(graph: Graph, source: str, name: str, weights: dict[str, np.ndarray]) -> str:
    return graph.linear(source, name, weights[f"{name}.weight"].T, weights[f"{name}.bias"])


def _pool(graph: Graph, hidden: str) -> None:
    """Mean over the tokens of the mask, then length 1."""
    mask = graph.node("Unsqueeze", "mask", graph.integers(2))
    total = graph.node("ReduceSum", graph.node("Mul", hidden, mask), graph.integers(1), keepdims=0)
    count = graph.node("ReduceSum", mask, graph.integers(1), keepdims=0)
    mean = graph.node("Div", total, graph.node("Max", count, graph.constant("one", np.float32(1))))
    length = graph.node("ReduceL2", mean, graph.integers(1), keepdims=1)
    length = graph.node("Max", length, graph.constant("tiny", np.float32(1e-9)))
    graph.node("Div", mean, length, output="vector")
