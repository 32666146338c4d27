"""Tiny model folders for the contracts that read ticket and question together, over the vocabulary of conftest.

Every logit counts words in common, so each answer can be worked out by hand. The models are written here, node by node.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from ticketgate.agents.scoring.contracts import open_contract
from ticketgate.agents.scoring.folder import load_folder
from ticketgate.codecs.systemone.question_reading import read_questions
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", "card", "late", "angry", "calm", "yes", "no", "?"]
INT, FLOAT, BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL

Tensors = list[tuple[str, int, list[Any]]]
node = helper.make_node


def graph(
    nodes: list[Any], inputs: Tensors, output: tuple[str, list[Any]], **constants: Any
) -> onnx.ModelProto:
    return helper.make_model(
        helper.make_graph(
            nodes,
            "tiny",
            [helper.make_tensor_value_info(*value) for value in inputs],
            [helper.make_tensor_value_info(output[0], FLOAT, output[1])],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )


def pair_model() -> onnx.ModelProto:
    """The number of pairs of equal tokens, one of each text; the closing [SEP] of each is always one."""
    return graph(
        [
            node("Gather", ["table", "input_ids"], ["words"]),
            node("Cast", ["attention_mask"], ["present"], to=FLOAT),
            node("Cast", ["token_type_ids"], ["second"], to=FLOAT),
            node("Mul", ["present", "second"], ["in_second"]),
            node("Sub", ["present", "in_second"], ["in_first"]),
            *[
                each
                for side in ("first", "second")
                for each in (
                    node("Unsqueeze", [f"in_{side}", "two"], [f"{side}_column"]),
                    node("Mul", ["words", f"{side}_column"], [f"{side}_words"]),
                    node("ReduceSum", [f"{side}_words", "one"], [f"{side}_bag"], keepdims=0),
                )
            ],
            node("Mul", ["first_bag", "second_bag"], ["common"]),
            node("ReduceSum", ["common", "one"], ["logit"], keepdims=1),
        ],
        [(name, INT, ["b", "t"]) for name in ("input_ids", "attention_mask", "token_type_ids")],
        ("logit", ["b", 1]),
        table=np.eye(len(WORDS), dtype=np.float32),
        one=np.array([1]),
        two=np.array([2]),
    )


def _marked(option: str, hidden: str) -> list[Any]:
    """How often the token behind each marker stands in the row, times 1 + qtype; what is no marker counts -100."""
    return [
        node("Transpose", [hidden], ["across"], perm=[0, 2, 1]),
        node("MatMul", [option, "across"], ["equal"]),
        node("Cast", ["attention_mask"], ["present"], to=FLOAT),
        node("Unsqueeze", ["present", "one"], ["present_row"]),
        node("Mul", ["equal", "present_row"], ["kept"]),
        node("ReduceSum", ["kept", "two"], ["counts"], keepdims=0),
        node("Cast", ["qtype"], ["kind"], to=FLOAT),
        node("Add", ["kind", "unit"], ["weight"]),
        node("Unsqueeze", ["weight", "one"], ["weight_column"]),
        node("Mul", ["counts", "weight_column"], ["weighted"]),
        node("Cast", ["marker_mask"], ["marked"], to=FLOAT),
        node("Sub", ["marked", "unit"], ["unmarked"]),
        node("Mul", ["unmarked", "hundred"], ["penalty"]),
        node("Add", ["weighted", "penalty"], ["logits"]),
    ]


def _behind_the_marker(hidden: str) -> list[Any]:
    return [
        node("Add", ["marker_pos", "one"], ["behind"]),
        node("Unsqueeze", ["behind", "two"], ["behind_column"]),
        node("Expand", ["behind_column", "wide"], ["places"]),
        node("GatherElements", [hidden, "places"], ["option"], axis=1),
    ]


_CONSTANTS: dict[str, Any] = {
    "one": np.array([1]),
    "two": np.array([2]),
    "unit": np.array(1, np.float32),
    "hundred": np.array(100, np.float32),
    "wide": np.array([1, 1, len(WORDS)]),
}
TABLE = np.eye(len(WORDS), dtype=np.float32)
_MARKERS: Tensors = [
    ("marker_pos", INT, ["b", "k"]),
    ("marker_mask", BOOL, ["b", "k"]),
    ("qtype", INT, ["b"]),
]


def fused_model() -> onnx.ModelProto:
    return graph(
        [
            node("Gather", ["table", "input_ids"], ["hidden"]),
            *_behind_the_marker("hidden"),
            *_marked("option", "hidden"),
        ],
        [("input_ids", INT, ["b", "t"]), ("attention_mask", INT, ["b", "t"]), *_MARKERS],
        ("logits", ["b", "k"]),
        table=TABLE,
        **_CONSTANTS,
    )


def split_encoder() -> onnx.ModelProto:
    return graph(
        [node("Gather", ["table", "input_ids"], ["words"]), node("Cast", ["attention_mask"], ["present"], to=FLOAT),
         node("Unsqueeze", ["present", "two"], ["column"]), node("Mul", ["words", "column"], ["hidden"])],
        [("input_ids", INT, ["b", "t"]), ("attention_mask", INT, ["b", "t"])],
        ("hidden", ["b", "t", len(WORDS)]),
        table=TABLE,
        two=np.array([2]),
    )  # fmt: skip


def split_head() -> onnx.ModelProto:
    return graph(
        [*_behind_the_marker("hidden"), *_marked("option", "hidden")],
        [("hidden", FLOAT, ["b", "t", len(WORDS)]), ("attention_mask", INT, ["b", "t"]), *_MARKERS],
        ("logits", ["b", "k"]),
        **_CONSTANTS,
    )


def tokenizer() -> str:
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))  # noqa: S106  # no password
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[MASK]"])
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    return made.to_str()


def manifest(contract: str, graphs: Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    return {
        "schema": "model/1",
        "name": "tiny",
        "version": "1",
        "contract": contract,
        "files": {},
        "graphs": dict(graphs),
        "tokenizer": {"file": "tokenizer.json", "pad_id": 0},
        "limits": {"window": 24},
        "conformance": "conformance.json",
    } | parts


def write_folder(
    folder: Path,
    document: dict[str, Any],
    graphs: Mapping[str, onnx.ModelProto],
    change: Callable[[dict[str, Any]], object] = lambda _: None,
) -> Path:
    """A whole folder; its conformance row says what the folder itself answers before `change`."""
    folder.mkdir()
    for name, model in graphs.items():
        (folder / name).write_bytes(model.SerializeToString())
    (folder / "tokenizer.json").write_text(tokenizer())
    row: dict[str, Any] = {
        "state": "card late yes",
        "questions": {
            "n": {"type": "noul", "instructions": "card"},
            "c": {"type": "choice", "criteria": {"card": None, "angry": None, "late": "card"}},
            "s": {"type": "score", "criteria": ["calm", "angry"]},
        },
        "answers": {},
    }
    _write(folder, document, row)
    contract = open_contract(load_folder(folder), threads=1)
    row["answers"] = dict(contract.score([row["state"]], read_questions(row["questions"]))[0].answers)
    change(document)
    _write(folder, document, row)
    return folder


def _write(folder: Path, document: dict[str, Any], row: dict[str, Any]) -> None:
    (folder / "conformance.json").write_text(json.dumps({"tolerance": 1e-4, "rows": [row]}))
    document["files"] = {
        path.name: {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
        for path in folder.iterdir()
        if path.name != "manifest.json"
    }
    (folder / "manifest.json").write_text(json.dumps(document))
