"""Train the upper half of the encoder together with a head, on labelled pairs: so that a vector tells what a turn of
phrase changes, which the vectors of a model of likeness hardly do.

Every step reads sets of turns (turns.py), where the head's answers must lie on the two sides and in order, labelled
pairs of all other kinds, and texts whose vectors must stay what the whole model says of them. The head is left behind:
one of its own is trained on the vectors as they are after rounding.
"""

import random
import time
from collections.abc import Sequence

import numpy as np
import torch
from bert import Student
from distil import upper_half, vectors
from head import Head
from student import padded
from tokenizers import Tokenizer
from torch import distributed
from torch.nn import functional
from triage import Row
from turns import turns

STEPS = 700
ALONE = 60  # the first steps train the head alone
RATE, HEAD_RATE = 2e-4, 1.5e-3
# Tickets that one of the processes reads a step, by kind; a set of turns has four.
TICKETS = {"public": 6, "own": 2, "contrast": 3, "generic": 2, "graded": 2, "choice": 2}
SETS = 6
KEPT_AS_THEY_ARE = 6
ROWS_OF_A_TICKET = 2
# What the parts of the loss weigh beside the labelled pairs of the other kinds.
TURNS, ORDER, STAYS = 1.0, 0.5, 6.0


def tune(
    student: Student,
    made: dict[str, list[Row]],
    known: tuple[Sequence[str], torch.Tensor],
    tokenizer: Tokenizer,
    *,
    without: set[str],
    seed: int,
) -> None:
    """Trains the student in place. made: rows by kind; known: texts, and the vectors that they should keep; without:
    groups of rows that are not learnt from."""
    place = distributed.get_rank()
    chance = random.Random(seed)  # noqa: S311  # not secret, but repeatable
    asked = {kind: _by_ticket(rows, without) for kind, rows in made.items()}
    places = {text: number for number, text in enumerate(known[0])}
    aim, names = known[1], list(known[0])
    mean = aim.mean(0)
    head = Head(mean.clone(), _mean_of_questions(student, made, tokenizer, chance)).train()
    upper, own = list(upper_half(student)), list(head.parameters())
    chance = random.Random(seed + place)  # noqa: S311  # each process reads other rows
    torch.manual_seed(seed + place)
    optimiser = torch.optim.AdamW(
        [{"params": upper, "lr": 0.0}, {"params": head.parameters(), "lr": HEAD_RATE, "betas": (0.9, 0.98)}],
        weight_decay=0.01,
    )
    sets = iter(_endless(without, chance))
    started, shown = time.process_time(), [0.0] * 4
    for step in range(STEPS):
        left = max(0.03, 1 - step / STEPS)
        optimiser.param_groups[0]["lr"] = RATE * left * min(1.0, max(0, step - ALONE) / 100)
        optimiser.param_groups[1]["lr"] = HEAD_RATE * left * min(1.0, (step + 1) / 30)
        chosen = [next(sets) for _ in range(SETS)]
        rows = [row for kind, count in TICKETS.items() for row in _some(asked[kind], count, chance)]
        stay = chance.sample(names, KEPT_AS_THEY_ARE)
        read = _Read(
            [text for turn in chosen for text, _ in turn.states] + [turn.question for turn in chosen]
            + [text for row in rows for text in (row.state, row.question)] + stay,
            student, tokenizer, frozen=step < ALONE,
        )  # fmt: skip
        found = head(
            read([text for turn in chosen for text, _ in turn.states] + [row.state for row in rows]),
            read([turn.question for turn in chosen for _ in turn.states] + [row.question for row in rows]),
        )
        labels = torch.tensor(
            [label for turn in chosen for _, label in turn.states] + [row.label for row in rows]
        )
        weights = torch.tensor([TURNS] * 4 * SETS + [row.weight for row in rows])
        answered = functional.binary_cross_entropy_with_logits(found, labels, weight=weights, reduction="sum")
        pairs = found[: 4 * SETS].view(SETS, 2, 2)
        order = functional.softplus(1.0 - (pairs[:, :, None, 0] - pairs[:, None, :, 1])).mean()
        steady = [text for text in read.texts if text in places]
        stays = (1 - _cosine(read(steady), aim[[places[text] for text in steady]], mean)).mean()
        loss = answered / weights.sum() + ORDER * order + STAYS * stays
        optimiser.zero_grad()
        loss.backward()
        _average(own if step < ALONE else upper + own)
        torch.nn.utils.clip_grad_norm_(upper, 1.0)
        optimiser.step()
        right = ((pairs[..., 0] >= 0) & (pairs[..., 1] < 0)).float().mean()
        for kind, value in enumerate((answered / weights.sum(), order, stays, right)):
            shown[kind] = 0.98 * shown[kind] + 0.02 * float(value)
        if step % 50 == 49 and place == 0:
            part = 1 - 0.98 ** (step + 1)
            print(
                f"tune {step + 1} of {STEPS}:",
                *(
                    f"{name} {value / part:.3f}"
                    for name, value in zip(("answers", "order", "moved", "right"), shown, strict=True)
                ),
                f"{time.process_time() - started:.0f} s",
                flush=True,
            )


def _average(parameters: Sequence[torch.nn.Parameter]) -> None:
    """Each gradient becomes the mean of all processes'."""
    joined = torch.cat([each.grad.flatten() for each in parameters])
    distributed.all_reduce(joined)
    joined /= distributed.get_world_size()
    at = 0
    for each in parameters:
        each.grad.copy_(joined[at : at + each.numel()].view_as(each))
        at += each.numel()


class _Read:
    """The vectors of some texts, each read once."""

    def __init__(self, texts: Sequence[str], student: Student, tokenizer: Tokenizer, *, frozen: bool) -> None:
        # Three batches by length: a long ticket would pad a hundred questions.
        tokens = {text: tokenizer.encode(text).ids[:128] for text in dict.fromkeys(texts)}
        self.texts = sorted(tokens, key=lambda text: len(tokens[text]))
        cut = len(self.texts) * 6 // 10, len(self.texts) * 9 // 10
        parts = self.texts[: cut[0]], self.texts[cut[0] : cut[1]], self.texts[cut[1] :]
        with torch.set_grad_enabled(not frozen):
            self._found = torch.cat(
                [vectors(student, *padded([tokens[text] for text in part])) for part in parts if part]
            )
        self._at = {text: place for place, text in enumerate(self.texts)}

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        return self._found[[self._at[text] for text in texts]]


class Reader:
    """Vectors of texts by the student as it is, float32 [texts, HIDDEN]."""

    def __init__(self, student: Student, tokenizer: Tokenizer) -> None:
        self._student, self._tokenizer = student, tokenizer

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        return _Read(texts, self._student, self._tokenizer, frozen=True)(texts).numpy()


def _by_ticket(rows: Sequence[Row], without: set[str]) -> list[list[Row]]:
    listed: dict[str, list[Row]] = {}
    for row in rows:
        if row.group not in without:
            listed.setdefault(row.state, []).append(row)
    return list(listed.values())


def _some(asked: Sequence[list[Row]], count: int, chance: random.Random) -> list[Row]:
    """Some tickets' rows."""
    return [
        row
        for listed in chance.sample(asked, count)
        for row in chance.sample(listed, min(ROWS_OF_A_TICKET, len(listed)))
    ]


def _endless(without: set[str], chance: random.Random):
    while True:
        yield from (each for each in turns(500, chance) if each.group not in without)


def _mean_of_questions(
    student: Student, made: dict[str, list[Row]], tokenizer: Tokenizer, chance: random.Random
) -> torch.Tensor:
    questions = sorted({row.question for rows in made.values() for row in rows})
    read = _Read(chance.sample(questions, 600), student, tokenizer, frozen=True)
    return read(read.texts).mean(0)


def _cosine(found: torch.Tensor, aim: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    def less(vectors: torch.Tensor) -> torch.Tensor:
        return functional.normalize(vectors - mean, dim=1)

    return (less(found) * less(aim)).sum(1)
