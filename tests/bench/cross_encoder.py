"""What a question costs beside a batched cross-encoder: the same encoder, the same precision, the same texts.

    .venv/bin/python -m tests.bench.cross_encoder

A cross-encoder reads each question together with each ticket; the default model reads a ticket once and keeps the
vectors of questions. Here both run on the default model's own encoder graph, one thread, tickets and questions
tokenized each time, pairs of like length together in batches of at most 2,048 tokens. The cross-encoder's readout is
left out, which favours it: what it gives means nothing, and only its cost is measured.
Promise: both are measured in one run, in turn, in processor time, so that whatever else the machine does falls on
both alike. Prints medians and the least ratio of neighbours; exits 3 if, with 32 tickets a call, a cross-encoder costs
less than 5 times as much with 5 questions or 15 times with 20.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import onnxruntime
from ticketgate.agents.scoring import Scorer, default_model_path, open_scorer
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import NoulQuestion
from tokenizers import Tokenizer

# By how many questions: how many times a cross-encoder must cost at least.
AT_LEAST = {5: 5.0, 20: 15.0}
TICKETS = (1, 32)
BATCH_TOKENS = 2048
ROUNDS = 5
TEXT = (
    "Hello, my card was charged twice for the same order last Friday, and your app shows only one of the two payments."
    " Could you please look into it and send the second amount back before the weekend? Order {number}"
)
TOPICS = (
    "a refund", "a delivery", "an invoice", "a lost card", "a broken product", "an account", "a password",
    "a complaint", "a contract", "a discount", "an appointment", "an outage", "a mistake of ours", "a danger",
    "personal data", "a return", "a visit", "a change of address", "a cancellation", "a bank transfer",
)  # fmt: skip


class CrossEncoder:
    """Reads pairs of question and ticket, batched."""

    def __init__(self) -> None:
        folder = default_model_path()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            folder / "encoder.onnx", options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def read(self, tickets: Sequence[Ticket], questions: Sequence[str]) -> int:
        """Every pair; how many there were."""
        texts = [str(ticket.state) for ticket in tickets]
        asked = self._tokenizer.encode_batch([(question, text) for text in texts for question in questions])
        pairs = sorted((pair.ids for pair in asked), key=len)
        start = 0
        while start < len(pairs):
            end = start + max(1, BATCH_TOKENS // len(pairs[min(start + 40, len(pairs) - 1)]))
            batch = pairs[start:end]
            ids = np.zeros((len(batch), len(batch[-1])), np.int64)
            mask = np.zeros_like(ids)
            for row, pair in enumerate(batch):
                ids[row, : len(pair)], mask[row, : len(pair)] = pair, 1
            self._session.run(["vector"], {"input_ids": ids, "attention_mask": mask})
            start += len(batch)
        return len(pairs)


def seconds(act: Callable[[], object]) -> float:
    before = time.process_time()
    act()
    return time.process_time() - before


def measured(
    scorer: Scorer, cross: CrossEncoder, *, tickets: int, questions: int, rounds: int
) -> dict[str, float]:
    """So many tickets a call with so many questions: milliseconds a ticket on either side, and how many times."""
    given = [Ticket(id=str(number), state=TEXT.format(number=number)) for number in range(tickets)]
    texts = [f"Is this about {topic}?" for topic in TOPICS[:questions]]
    asked = {text: NoulQuestion(text) for text in texts}
    scorer.score(given, asked)  # the vectors of questions are kept from here on, as in a worker
    cross.read(given[:1], texts)
    spent = [
        (seconds(lambda: scorer.score(given, asked)), seconds(lambda: cross.read(given, texts)))
        for _ in range(rounds)
    ]
    times = [theirs / ours for ours, theirs in spent]
    own, other = (1000 * statistics.median(side) / tickets for side in zip(*spent, strict=True))
    return {
        "tickets": tickets,
        "questions": questions,
        "ms a ticket": round(own, 2),
        "cross-encoder": round(other, 2),
        "times": round(statistics.median(times), 1),
        "least": round(min(times), 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    scorer, cross = open_scorer("onnx"), CrossEncoder()
    found = [
        measured(scorer, cross, tickets=tickets, questions=questions, rounds=rounds)
        for tickets in TICKETS
        for questions in AT_LEAST
    ]
    print(json.dumps({"model": scorer.model.hash[:12], "rounds": rounds, "measured": found}, indent=1))
    batched = [each for each in found if each["tickets"] == max(TICKETS)]
    return 0 if all(each["times"] >= AT_LEAST[int(each["questions"])] for each in batched) else 3


if __name__ == "__main__":
    sys.exit(main())
