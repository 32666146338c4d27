"""The shipped model's answers to the benchmark's questions, by plain onnxruntime, as a good engineer would have them.

A ticket's text is tokenised once and read in one window; texts of near length share an inference; the questions'
vectors are worked out at the start. What ticketgate does besides is left out: it refuses texts in other languages, and
says what was cut.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

QUESTIONS = {
    "urgent": "Must this be handled today?",
    "review": "Should a colleague look at this before anything is sent?",
    "auto_reply": "Would a prepared answer do?",
    "billing": "Is this about money?",
    "technical": "Is something not working?",
}
# As ticketgate bounds and parts its own inferences.
MOST_TOKENS, SPAN = 2048, 16


class Model:
    """The model of a folder, on one thread."""

    def __init__(self, folder: Path) -> None:
        self._manifest = json.loads((folder / "manifest.json").read_text())
        self._encoder, self._head = (self._open(folder, name) for name in ("encoder", "head"))
        self._tokenizer = Tokenizer.from_file(str(folder / self._manifest["tokenizer"]["file"]))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(self._manifest["limits"]["window"])
        self._asked = self._encode([*QUESTIONS.values()])

    def answer(self, texts: Sequence[str]) -> list[dict[str, dict[str, Any]]]:
        """The answers to all questions about each text."""
        fit, graph = self._manifest["calibration"]["noul"], self._manifest["graphs"]["head"]
        fed = {
            graph["inputs"]["state"]: self._encode(texts),
            graph["inputs"]["question"]: self._asked,
        }
        logits = np.asarray(self._head.run([graph["outputs"]["logit"]], fed)[0])
        return [
            {
                name: {"type": "noul", "noul": 1 / (1 + math.exp(-(fit["scale"] * float(x) + fit["bias"])))}
                for name, x in zip(QUESTIONS, row, strict=True)
            }
            for row in logits
        ]

    def _open(self, folder: Path, name: str) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        for key, value in self._manifest.get("session", {}).items():
            options.add_session_config_entry(key, value)
        return onnxruntime.InferenceSession(
            folder / self._manifest["graphs"][name]["file"], options, providers=["CPUExecutionProvider"]
        )

    def _encode(self, texts: Sequence[str]) -> np.ndarray:
        read = [each.ids for each in self._tokenizer.encode_batch([*texts])]
        vectors: list[Any] = [None] * len(texts)
        for batch in _batches([len(ids) for ids in read]):
            for place, vector in zip(batch, self._run([read[place] for place in batch]), strict=True):
                vectors[place] = vector
        return np.stack(vectors)

    def _run(self, read: Sequence[Sequence[int]]) -> np.ndarray:
        graph = self._manifest["graphs"]["encoder"]
        ids = np.full((len(read), max(map(len, read))), self._manifest["tokenizer"]["pad_id"], np.int64)
        mask = np.zeros_like(ids)
        for row, each in enumerate(read):
            ids[row, : len(each)], mask[row, : len(each)] = each, 1
        kinds = {tensor.name: tensor.type for tensor in self._encoder.get_inputs()}
        fed = {
            tensor: value.astype(np.int32 if "int32" in kinds[tensor] else np.int64, copy=False)
            for tensor, value in ((graph["inputs"]["ids"], ids), (graph["inputs"]["mask"], mask))
        }
        return np.asarray(self._encoder.run([graph["outputs"]["vector"]], fed)[0])


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    batches: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[place]
        if (
            batches
            and length // SPAN == lengths[batches[-1][0]] // SPAN
            and length * (len(batches[-1]) + 1) <= MOST_TOKENS
        ):
            batches[-1].append(place)
        else:
            batches.append([place])
    return batches
