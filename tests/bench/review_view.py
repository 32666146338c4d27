"""How quick and how large the view is with many rows: `python -m tests.bench.review_view ROWS`.

Prints the time to feed it, its size on disk, the process' memory, and of a first page, filtered pages and counts the
p50 and p95 over 200 calls each, and what of it was the processor's: on a busy machine the rest is waiting.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ticketgate.streams.operations.review.rows import Kind, Reviewed, State, Wanted
from ticketgate.streams.operations.review.view import View

CALLS = 200
BATCH = 2_000
NOW = 1_800_000_000_000
WORDS = ["card", "charged", "twice", "refund", "printer", "invoice", "parcel", "late", "broken", "password"]


def rows(first: int, stop: int, count: int) -> list[Reviewed]:
    chance = random.Random(first)
    return [
        Reviewed(
            place=f"review:{n % 6}:{n // 6}", key=f"{n:064x}", ticket_id=f"T-{n}", tenant=f"t{n % 7}",
            kind=Kind.DECISION, at_ms=NOW - 10 * count + 10 * n, sha256="ab" * 32,
            stage=chance.choice(["policy", "abstention", "answers"]), policy="support",
            rules=(*chance.sample([f"rule-{k}" for k in range(12)], chance.randrange(1, 3)), *_seldom(n)),
            labels=(*chance.sample([f"label-{k}" for k in range(20)], 3), *(["odd"] if n % 2 else [])),
            reasons=("a rule is broken",), text=" ".join([*chance.choices(WORDS, k=30), ("even", "odd")[n % 2]]),
        )
        for n in range(first, stop)
    ]  # fmt: skip


def _seldom(n: int) -> list[str]:
    """Rules that half of all have, and that one in ten thousand has."""
    return [*(["even"] if n % 2 == 0 else []), *(["rare"] if n % 10_000 == 9_999 else [])]


def timed(name: str, call: Callable[[], object]) -> None:
    walls, computed = list[float](), list[float]()
    for _ in range(CALLS):
        start, cpu = time.perf_counter(), time.process_time()
        call()
        walls.append((time.perf_counter() - start) * 1000)
        computed.append((time.process_time() - cpu) * 1000)
    walls.sort()
    computed.sort()
    half, most = CALLS // 2, CALLS * 95 // 100
    told = f"p50 {walls[half]:7.2f} ms   p95 {walls[most]:7.2f} ms   of the processor p95 {computed[most]:7.2f} ms"
    print(f"{name:<34} {told}", flush=True)


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "view.sqlite3"
        with View(path, about={}, claim_ttl_ms=30 * 86_400_000) as view:
            start = time.perf_counter()
            for at in range(0, count, BATCH):
                view.add(rows(at, min(at + BATCH, count), count), {("review", 0): at})
            print(f"{count:,} rows made up and fed in {time.perf_counter() - start:.1f} s", flush=True)
            middle = view.page(Wanted(), now_ms=NOW, most=1)[0].id + 5 * count * 4096
            questions = {
                "first page": lambda: view.page(Wanted(), now_ms=NOW),
                "page in the middle": lambda: view.page(Wanted(), now_ms=NOW, after=middle),
                "a rule": lambda: view.page(Wanted(rules=["rule-3"]), now_ms=NOW),
                "rule, label and tenant": lambda: view.page(
                    Wanted(rules=["rule-3"], labels=["label-5"], tenant="t2"), now_ms=NOW
                ),
                "two that never hold together": lambda: view.page(
                    Wanted(rules=["even"], labels=["odd"]), now_ms=NOW
                ),
                "words that never do": lambda: view.page(Wanted(words="even odd"), now_ms=NOW),
                "words and a rule of which few have both": lambda: view.page(
                    Wanted(words="card", rules=["rare"]), now_ms=NOW
                ),
                "count of two that never do": lambda: view.count(
                    Wanted(rules=["even"], labels=["odd"]), now_ms=NOW
                ),
                "count of words that never do": lambda: view.count(Wanted(words="even odd"), now_ms=NOW),
                "words that all have": lambda: view.page(Wanted(words="card"), now_ms=NOW),
                "words and a rule": lambda: view.page(
                    Wanted(words="card refund", rules=["rule-3"]), now_ms=NOW
                ),
                "count of all": lambda: view.count(Wanted(), now_ms=NOW),
                "count of a rule": lambda: view.count(Wanted(rules=["rule-3"]), now_ms=NOW),
                "count of rule, label and tenant": lambda: view.count(
                    Wanted(rules=["rule-3"], labels=["label-5"], tenant="t2"), now_ms=NOW
                ),
                "count of words": lambda: view.count(Wanted(words="card"), now_ms=NOW),
                "numbers": lambda: view.numbers(now_ms=NOW),
                "expired page": lambda: view.page(Wanted(state=State.EXPIRED), now_ms=NOW),
                "a ticket by its id": lambda: view.find(f"T-{count // 2}", now_ms=NOW),
            }
            for name, call in questions.items():
                timed(name, call)
        size = sum(each.stat().st_size for each in Path(folder).iterdir())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{size / 2**20:.0f} MB on disk, {memory:.0f} MB of memory at most")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
