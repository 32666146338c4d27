"""What an ONNX file reaches beyond itself, read before onnxruntime sees it: external data, and operators' domains.

Promise: linear in the file, bounded in depth, and nothing is copied; what is no ONNX protobuf raises `NotAGraph`.
onnxruntime would take external data from wherever a path leads, and a file in its own format, of which this reads
nothing, for a graph as well. Source: onnx.proto (the fields' numbers), the protobuf encoding.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

# Graphs inside nodes (If, Loop) inside graphs; people nest a few.
MOST_DEPTH: Final = 64

# What ships inside onnxruntime. A domain of the file's own functions is no custom operator: they are written out there.
KNOWN_DOMAINS: Final = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})
# Of these, what stands for a file that another compiler made.
_OPAQUE: Final = frozenset({"EPContext"})

# By message: the fields that hold further messages. Field numbers are onnx.proto's.
_MESSAGES: Final[Mapping[str, Mapping[int, str]]] = {
    "Model": {7: "Graph", 20: "Training", 25: "Function"},
    "Training": {1: "Graph", 2: "Graph"},
    "Graph": {1: "Node", 5: "Tensor", 15: "Sparse"},
    "Function": {7: "Node", 11: "Attribute"},
    "Node": {5: "Attribute"},
    "Attribute": {5: "Tensor", 6: "Graph", 10: "Tensor", 11: "Graph", 22: "Sparse", 23: "Sparse"},
    "Sparse": {1: "Tensor", 2: "Tensor"},
    "Tensor": {13: "Entry"},
    "Entry": {},
}
_GRAPH: Final = 7
_OPERATOR, _NODE_DOMAIN, _FUNCTION_DOMAIN = 4, 7, 10
_ENTRY_KEY, _ENTRY_VALUE = 1, 2
_EXTERNAL, _DATA_LOCATION = 1, 14
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5


class NotAGraph(ValueError):
    """The bytes are no ONNX protobuf, or nest deeper than graphs do."""


@dataclass(slots=True)
class Reach:
    """locations: the files that hold external data. domains: of operators that neither onnxruntime nor the file has.
    operators: that run what is no part of the graph. Each sorted by name when asked for."""

    locations: set[str] = field(default_factory=set)
    domains: set[str] = field(default_factory=set)
    operators: set[str] = field(default_factory=set)


def read_reach(content: bytes) -> Reach:
    """What the graph in `content` reaches beyond itself. Raises NotAGraph."""
    found, own = Reach(), set[str]()
    if all(number != _GRAPH for number, _ in _parts(memoryview(content))):
        raise NotAGraph("it holds no graph")
    todo: list[tuple[str, memoryview, int]] = [("Model", memoryview(content), 0)]
    while todo:
        kind, data, depth = todo.pop()
        if depth > MOST_DEPTH:
            raise NotAGraph(f"nested more than {MOST_DEPTH} levels deep")
        if kind == "Tensor":
            _external(data, found)
            continue
        for number, value in _parts(data):
            if number in _MESSAGES[kind]:
                todo.append((_MESSAGES[kind][number], value, depth + 1))
            elif kind == "Node":
                _operator(number, value, found)
            elif kind == "Function" and number == _FUNCTION_DOMAIN:
                own.add(_text(value))
    found.domains -= KNOWN_DOMAINS | own
    return found


def _operator(number: int, value: memoryview, found: Reach) -> None:
    if number == _NODE_DOMAIN:
        found.domains.add(_text(value))
    elif number == _OPERATOR and _text(value) in _OPAQUE:
        found.operators.add(_text(value))


def _external(tensor: memoryview, found: Reach) -> None:
    """Note where a tensor's data lie if not in the file."""
    location, is_external = None, False
    for number, wire, value in _fields(tensor):
        if number == _DATA_LOCATION and wire == _VARINT:
            is_external = value == _EXTERNAL
        elif number in _MESSAGES["Tensor"] and isinstance(value, memoryview):
            entry = {each: _text(text) for each, text in _parts(value)}
            if entry.get(_ENTRY_KEY) == "location":
                location = entry.get(_ENTRY_VALUE, "")
    if is_external or location is not None:
        found.locations.add(location or "")


def _parts(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields that hold bytes: texts and further messages."""
    return ((number, value) for number, _, value in _fields(data) if isinstance(value, memoryview))


def _fields(data: memoryview) -> Iterator[tuple[int, int, memoryview | int]]:
    """Each field's number, wire type and value. Raises NotAGraph for what is no protobuf."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_FIXED_64, _FIXED_32):
            size = 8 if wire == _FIXED_64 else 4
        else:
            raise NotAGraph("it is no protobuf")
        if number == 0 or size > len(data) - at:
            raise NotAGraph("it is no protobuf")
        yield number, wire, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise NotAGraph("it is no protobuf")


def _text(value: memoryview) -> str:
    return bytes(value).decode("utf-8", "replace")
