"""Turn texts into the encoder's vectors, as ticketgate will: same graph, same tokens, same window."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
from encoder import WINDOW
from processes import apart
from tokenizers import Tokenizer

BATCH_TOKENS = 2048
PROCESSES = 6


class Encoder:
    """Vectors of texts; each distinct text is read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._session: onnxruntime.InferenceSession | None = None
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._known: dict[str, np.ndarray] = {}

    def read(self, texts: Sequence[str]) -> None:
        """Keep the vectors of many texts, read by several processes that share one core's work evenly."""
        new = self._new(texts)
        parts = [new[first::PROCESSES] for first in range(PROCESSES)]
        for part, found in zip(
            parts, apart([partial(Encoder(self._folder), part) for part in parts]), strict=True
        ):
            self._known.update(zip(part, found, strict=True))

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [len(texts), 384]."""
        batch: list[tuple[str, list[int]]] = []
        for text in self._new(texts):
            ids = self._tokenizer.encode(text).ids
            ids = ids if len(ids) <= WINDOW else [*ids[: WINDOW - 1], ids[-1]]
            if batch and max(len(ids), *(len(i) for _, i in batch)) * (len(batch) + 1) > BATCH_TOKENS:
                self._run(batch)
                batch = []
            batch.append((text, ids))
        if batch:
            self._run(batch)
        return np.stack([self._known[t] for t in texts])

    def _new(self, texts: Sequence[str]) -> list[str]:
        # By length, then by text: a set has another order in each process, and batches would differ in the last digits.
        return sorted(set(texts) - self._known.keys(), key=lambda text: (len(text), text))

    def _run(self, batch: list[tuple[str, list[int]]]) -> None:
        width = max(len(ids) for _, ids in batch)
        tokens = np.zeros((len(batch), width), np.int64)
        mask = np.zeros_like(tokens)
        for row, (_, ids) in enumerate(batch):
            tokens[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        if self._session is None:  # not before: a session does not survive a fork
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            file = self._folder / "encoder.onnx"
            self._session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        found = self._session.run(["vector"], {"input_ids": tokens, "attention_mask": mask})[0]
        self._known.update(zip((t for t, _ in batch), found, strict=True))
