"""The encoder as an ONNX graph: eight layers of bge-small-en-v1.5 and an affine map, in int8 with fixed scales.

Inputs `input_ids`, `attention_mask` (int64 [batch, tokens]), output `vector` (float32 [batch, 384], of length 1).

Weights are int8 with one scale a column, of 63 steps either way: seven bits, so that a processor without VNNI, which
adds two products in 16 bits, cannot overflow and gives the same answers. What enters a product is rounded to uint8 by a
scale that was fixed when the model was made: dynamic int8 takes its scale from the whole batch, and moved probabilities
by up to 0.39. Attention, normalisation and the sums stay fp32. The last layer reads all tokens and writes [CLS] alone.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HIDDEN, HEADS, EPSILON = 384, 12, 1e-12
KEPT = (0, 1, 2, 3, 8, 9, 10, 11)  # of the twelve layers; the map stands for the four between
MAP_BEFORE = 4  # the map's place: before this one of the kept layers
WINDOW = 256
MASKED = -1e9  # finite: -inf would turn a row that is all padding into NaN
STEPS = 63
ONNXRUNTIME = "com.microsoft"

Weights = Mapping[str, np.ndarray]


class Graph:
    """Collects nodes and initialisers; every method gives back the name of what it made.

    scales: least and greatest value of what enters each product; None builds the graph in fp32, with each such input
    listed in `probes`, so that the scales can be measured.
    """

    def __init__(self, scales: Mapping[str, tuple[float, float]] | None) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initialisers: dict[str, onnx.TensorProto] = {}
        self.probes: dict[str, str] = {}
        self._scales = scales

    def node(
        self, operator: str, *inputs: str, output: str = "", domain: str = "", **attributes: object
    ) -> str:
        name = output or f"{operator.lower()}_{len(self.nodes)}"
        made = helper.make_node(operator, list(inputs), [name], name=name, domain=domain, **attributes)
        self.nodes.append(made)
        return name

    def constant(self, name: str, value: np.ndarray | np.generic) -> str:
        if name not in self.initialisers:
            self.initialisers[name] = numpy_helper.from_array(np.array(value, order="C"), name)
        return name

    def integers(self, *values: int) -> str:
        return self.constant("int_" + "_".join(map(str, values)), np.array(values, np.int64))

    def entry(self, source: str, name: str) -> tuple[str, str]:
        """What enters products, rounded: its name, and the name of its scale."""
        self.probes[name] = source
        if self._scales is None:
            return source, name
        low, high = (min(self._scales[name][0], 0.0), max(self._scales[name][1], 0.0))
        scale = np.float32((high - low) / 255)
        zero = np.uint8(np.clip(round(-low / float(scale)), 0, 255))
        names = self.constant(f"{name}.scale", scale), self.constant(f"{name}.zero", zero)
        return self.node("QuantizeLinear", source, *names), name

    def linear(self, entry: tuple[str, str], name: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """entry [.., inputs] times weight [inputs, outputs], plus bias."""
        source, entered = entry
        if self._scales is None:
            product = self.node("MatMul", source, self.constant(f"{name}.weight", weight))
            return self.node("Add", product, self.constant(f"{name}.bias", bias))
        scale = np.maximum(np.abs(weight).max(0), 1e-8).astype(np.float32) / STEPS
        rounded = np.clip(np.round(weight / scale), -STEPS, STEPS).astype(np.int8)
        return self.node(
            "MatMulIntegerToFloat",
            source,
            self.constant(f"{name}.int8", rounded),
            f"{entered}.scale",
            self.constant(f"{name}.scale", scale),
            f"{entered}.zero",
            self.constant(f"{name}.zero", np.zeros(len(scale), np.int8)),
            self.constant(f"{name}.bias", bias),
            domain=ONNXRUNTIME,
        )

    def normalise(self, source: str, name: str, weights: Weights) -> str:
        names = [self.constant(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias")]
        return self.node("LayerNormalization", source, *names, axis=-1, epsilon=EPSILON)


def build(weights: Weights, scales: Mapping[str, tuple[float, float]] | None) -> onnx.ModelProto:
    """The whole encoder as one ONNX model, from a Student's weights (bert.py). Without scales it is in fp32, and each
    input of a product is an output of the graph, by the name that `scales` has for it."""
    graph = Graph(scales)
    hidden, bias = _embed(graph, weights), _attention_bias(graph)
    for layer in range(len(KEPT)):
        if layer == MAP_BEFORE:
            hidden = graph.linear(
                graph.entry(hidden, "map.in"), "map", weights["map.weight"].T, weights["map.bias"]
            )
        hidden = _layer(graph, f"layers.{layer}", hidden, bias, weights, is_last=layer == len(KEPT) - 1)
    _vector(graph, hidden)
    outputs = [helper.make_tensor_value_info("vector", TensorProto.FLOAT, ["batch", HIDDEN])]
    if scales is None:
        graph.nodes += [helper.make_node("Identity", [at], [name]) for name, at in graph.probes.items()]
        outputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in graph.probes]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    return helper.make_model(
        helper.make_graph(graph.nodes, "bge-small-en-v1.5, eight layers, static int8", inputs, outputs,
                          list(graph.initialisers.values())),
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(ONNXRUNTIME, 1)],
        ir_version=10,
        producer_name="ticketgate deploy/model",
    )  # fmt: skip


def _embed(graph: Graph, weights: Weights) -> str:
    """Words and places. The table is looked up before it is scaled, so that its 47 MB never exist as floats."""
    words = weights["words.weight"]
    scale = np.maximum(np.abs(words).max(1, keepdims=True), 1e-8).astype(np.float32) / 127
    table = graph.constant("words.int8", np.clip(np.round(words / scale), -127, 127).astype(np.int8))
    scales = graph.constant("words.scale", scale)
    rows = graph.node("Cast", graph.node("Gather", table, "input_ids"), to=TensorProto.FLOAT)
    embedded = graph.node("Mul", rows, graph.node("Gather", scales, "input_ids"))
    tokens = graph.node("Shape", "input_ids", start=1, end=2)
    places = graph.constant("positions", weights["pos"][:WINDOW])
    placed = graph.node("Slice", places, graph.integers(0), tokens, graph.integers(0))
    return graph.normalise(graph.node("Add", embedded, placed), "ln", weights)


def _attention_bias(graph: Graph) -> str:
    """[batch, 1, 1, tokens]: 0 where there is a token, MASKED where there is padding."""
    mask = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    padding = graph.node("Sub", graph.constant("one", np.float32(1)), mask)
    bias = graph.node("Mul", padding, graph.constant("masked", np.float32(MASKED)))
    return graph.node("Unsqueeze", bias, graph.integers(1, 2))


def _layer(graph: Graph, name: str, hidden: str, bias: str, weights: Weights, *, is_last: bool) -> str:
    # 1/sqrt(head size) is folded into the query: one multiplication less on every score.
    weight, offset = weights[f"{name}.qkv.weight"].T.copy(), weights[f"{name}.qkv.bias"].copy()
    weight[:, :HIDDEN] *= np.float32((HIDDEN // HEADS) ** -0.5)
    offset[:HIDDEN] *= np.float32((HIDDEN // HEADS) ** -0.5)
    entry = graph.entry(hidden, f"{name}.in")
    parts = [f"{name}.{part}" for part in "qkv"]
    if is_last:
        first = graph.integers(0), graph.integers(1), graph.integers(1)
        cls = graph.node("Slice", entry[0], *first), entry[1]
        parts[0] = graph.linear(cls, f"{name}.query", weight[:, :HIDDEN], offset[:HIDDEN])
        rest = graph.linear(entry, f"{name}.key_value", weight[:, HIDDEN:], offset[HIDDEN:])
        graph.nodes.append(helper.make_node("Split", [rest], parts[1:], axis=-1, num_outputs=2))
        hidden = graph.node("Slice", hidden, *first)
    else:
        joined = graph.linear(entry, f"{name}.qkv", weight, offset)
        graph.nodes.append(helper.make_node("Split", [joined], parts, axis=-1, num_outputs=3))
    heads = graph.integers(0, 0, HEADS, HIDDEN // HEADS)
    query, key, value = (graph.node("Reshape", part, heads) for part in parts)
    query = graph.node("Transpose", query, perm=[0, 2, 1, 3])
    key = graph.node("Transpose", key, perm=[0, 2, 3, 1])
    value = graph.node("Transpose", value, perm=[0, 2, 1, 3])
    scores = graph.node("Softmax", graph.node("Add", graph.node("MatMul", query, key), bias), axis=-1)
    mixed = graph.node("Transpose", graph.node("MatMul", scores, value), perm=[0, 2, 1, 3])
    mixed = graph.node("Reshape", mixed, graph.integers(0, 0, HIDDEN))
    out = _named(graph, mixed, f"{name}.out", weights)
    hidden = graph.normalise(graph.node("Add", out, hidden), f"{name}.ln1", weights)
    inner = graph.node("Gelu", _named(graph, hidden, f"{name}.inter", weights))
    out = _named(graph, inner, f"{name}.output", weights)
    return graph.normalise(graph.node("Add", out, hidden), f"{name}.ln2", weights)


def _named(graph: Graph, source: str, name: str, weights: Weights) -> str:
    return graph.linear(
        graph.entry(source, f"{name}.in"), name, weights[f"{name}.weight"].T, weights[f"{name}.bias"]
    )


def _vector(graph: Graph, hidden: str) -> None:
    """The only token that is left, of length 1."""
    cls = graph.node("Squeeze", hidden, graph.integers(1))
    length = graph.node("ReduceL2", cls, graph.integers(1), keepdims=1)
    length = graph.node("Max", length, graph.constant("tiny", np.float32(1e-9)))
    graph.node("Div", cls, length, output="vector")
