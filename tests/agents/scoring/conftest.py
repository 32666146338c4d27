"""A model folder small enough to read: the contract bi-encoder-head over eight words.

Its encoder gives each word one of eight axes and takes the mean; its head is the dot product. So a ticket
and a question that share words are alike, and every answer can be worked out by hand.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from ticketgate.agents.scoring.contracts import open_contract
from ticketgate.agents.scoring.folder import load_folder
from ticketgate.agents.scoring.onnx import OnnxScorer
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.question_reading import read_questions
from ticketgate.codecs.systemone.questions import NoulQuestion
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "card", "late", "angry", "calm"]

Build = Callable[..., Path]


def tiny_encoder() -> onnx.ModelProto:
    node = helper.make_node
    constants = {
        "table": np.eye(len(WORDS), dtype=np.float32),
        "last": np.array([-1], np.int64),
        "tokens_axis": np.array([1], np.int64),
    }
    return _model(
        [
            node("Gather", ["table", "input_ids"], ["words"]),
            node("Cast", ["attention_mask"], ["weights"], to=TensorProto.FLOAT),
            node("Unsqueeze", ["weights", "last"], ["column"]),
            node("Mul", ["words", "column"], ["kept"]),
            node("ReduceSum", ["kept", "tokens_axis"], ["total"], keepdims=0),
            node("ReduceSum", ["weights", "tokens_axis"], ["count"], keepdims=1),
            node("Div", ["total", "count"], ["vector"]),
        ],
        [("input_ids", TensorProto.INT64, ["b", "t"]), ("attention_mask", TensorProto.INT64, ["b", "t"])],
        [("vector", TensorProto.FLOAT, ["b", len(WORDS)])],
        constants,
    )


def tiny_head() -> onnx.ModelProto:
    node = helper.make_node
    return _model(
        [
            node("Transpose", ["question"], ["across"], perm=[1, 0]),
            node("MatMul", ["state", "across"], ["logit"]),
        ],
        [("state", TensorProto.FLOAT, ["n", len(WORDS)]), ("question", TensorProto.FLOAT, ["m", len(WORDS)])],
        [("logit", TensorProto.FLOAT, ["n", "m"])],
        {},
    )


def tiny_tokenizer() -> str:
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))  # noqa: S106  # no password
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return tokenizer.to_str()


def manifest() -> dict[str, Any]:
    return {
        "schema": "model/1",
        "name": "tiny",
        "version": "1",
        "contract": "bi-encoder-head",
        "files": {},
        "graphs": {
            "encoder": {
                "file": "encoder.onnx",
                "inputs": {"ids": "input_ids", "mask": "attention_mask"},
                "outputs": {"vector": "vector"},
            },
            "head": {
                "file": "head.onnx",
                "inputs": {"state": "state", "question": "question"},
                "outputs": {"logit": "logit"},
            },
        },
        "tokenizer": {"file": "tokenizer.json", "pad_id": 0},
        "template": {
            "state": "{state}",
            "noul": "{instructions}",
            "noul_true": " {description}",
            "noul_false": " {description}",
            "option": "{label}",
            "described_option": "{label} {description}",
            "level": "{description}",
        },
        "calibration": {
            "noul": {"scale": 8.0, "bias": -2.0},
            "choice": {"scale": 9.0},
            "score": {"scale": 9.0},
        },
        "limits": {"window": 16},
        "conformance": "conformance.json",
    }


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Writes a whole tiny folder. `change` alters the manifest before the files' hashes are taken."""

    def write(change: Callable[[dict[str, Any]], object] = lambda _: None, *, bias: float = 0.0) -> Path:
        folder = tmp_path / "model"
        folder.mkdir()
        document = manifest()
        (folder / "encoder.onnx").write_bytes(tiny_encoder().SerializeToString())
        (folder / "head.onnx").write_bytes(tiny_head().SerializeToString())
        (folder / "tokenizer.json").write_text(tiny_tokenizer())
        questions = {"card": {"type": "noul", "instructions": "card"}}
        row: dict[str, Any] = {"state": "card late", "questions": questions, "answers": {}}
        write_manifest(folder, document, row)
        contract = open_contract(load_folder(folder), threads=1)
        row["answers"] = dict[str, Any](contract.score([row["state"]], read_questions(questions))[0].answers)
        for answer in row["answers"].values():
            answer["noul"] += bias
        change(document)
        write_manifest(folder, document, row)
        return folder

    return write


def write_manifest(folder: Path, document: dict[str, Any], row: dict[str, Any]) -> None:
    (folder / "conformance.json").write_text(json.dumps({"tolerance": 1e-4, "rows": [row]}))
    for name in ("encoder.onnx", "head.onnx", "tokenizer.json", "conformance.json"):
        content = (folder / name).read_bytes()
        document["files"].setdefault(
            name, {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        )
        if name == "conformance.json":
            document["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    (folder / "manifest.json").write_text(json.dumps(document))


@pytest.fixture
def tiny(build: Build) -> OnnxScorer:
    return OnnxScorer.open(build())


@pytest.fixture
def tickets() -> Callable[[Iterable[Any]], list[Ticket]]:
    return lambda states: [Ticket(id=f"T-{i}", state=state) for i, state in enumerate(states)]


@pytest.fixture
def card() -> dict[str, NoulQuestion]:
    return {"card": NoulQuestion("card")}


def _model(
    nodes: list[onnx.NodeProto],
    inputs: list[tuple[str, int, list[Any]]],
    outputs: list[tuple[str, int, list[Any]]],
    constants: dict[str, Any],
) -> onnx.ModelProto:
    return helper.make_model(
        helper.make_graph(
            nodes,
            "tiny",
            [helper.make_tensor_value_info(*value) for value in inputs],
            [helper.make_tensor_value_info(*value) for value in outputs],
            [numpy_helper.from_array(value, name) for name, value in constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
