"""A storm on the funnel: proposed payments stream in while workers, broker, Redis and the bank fail, then the books.

`python -m tests.chaos.payments --seed 1 --proposals 1000` prints a report and exits 1 if a transfer was made twice or
without a receipt, a receipt tells of a transfer that does not stand, an outcome stayed open, or a proposal is missing
or was decided twice. Everything is read by plain aiokafka and asked of the bank itself.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ..support.deployment import Deployment, Sent
from ..support.payment_funnel import PaymentFunnel, Record, assert_consistent
from ..support.payments import PaymentServer
from ..support.proposals import call, funnel_file, key_of, proposal
from . import network as networks
from .faults import Scene
from .run import SESSION_S, SETTLE_TIMEOUT_S, failing, send_while

CHUNK = 20
# Longer than any fault of the bank lets a request be on its way.
SETTLE_S = 4.0

# What one request in so many meets at the bank, by its key.
BANK_FAULTS = (
    "silence",
    "drop",
    "unavailable",
    "refuse",
    "late_commit",
    "commit_then_silence",
    "commit_then_drop",
    "commit_then_unavailable",
    "commit_then_late_answer",
    "answer_twice",
    "serve_twice",
)
FAULTY_SHARE = 0.4
DRIFT_SHARE = 0.15
REPEATED_SHARE = 0.2


@dataclass(frozen=True)
class Report:
    """What one run came to. By the newest receipt of each key: committed, rejected, absent, open."""

    seed: int
    faults: dict[str, int]
    requests: dict[str, int]
    """What the network did to how many requests."""
    bank_faults: dict[str, int]
    cases: int
    dispatched: int
    repairs: int
    review: int
    decided_twice: int
    undecided: int
    committed: int
    rejected: int
    absent: int
    open: int
    transfers: int
    made_twice: int
    untold: int
    told_wrongly: int
    most_sends: int
    seconds: float

    @property
    def is_clean(self) -> bool:
        """Whether each proposal was decided once, and each effect happened as its receipt says, and once."""
        return not (
            self.decided_twice
            or self.undecided
            or self.open
            or self.made_twice
            or self.untold
            or self.told_wrongly
        )


@dataclass(frozen=True)
class Load:
    """The proposals of a run, and what the bank does about some keys."""

    sent: Sequence[Sent]
    attempts: frozenset[tuple[str, int]]
    bank_faults: Sequence[tuple[str, str, float]]

    def chunks(self, size: int) -> Iterator[Sequence[Sent]]:
        """In order, in parts."""
        for start in range(0, len(self.sent), size):
            yield self.sent[start : start + size]


def actor_of(case_id: str) -> str:
    """Who asks for a case: each has an actor of its own, who confirmed it alone."""
    return f"actor-of-{case_id}"


def load_of(seed: int, cases: int) -> Load:
    """Right calls, calls with a drifted amount and their repair, and repetitions of either, shuffled a little."""
    rng = random.Random(seed)
    placed: list[tuple[float, Sent]] = []
    attempts: set[tuple[str, int]] = set()
    faults: list[tuple[str, str, float]] = []
    for number in range(cases):
        case_id = f"case-{number}"
        tries = [call()]
        if rng.random() < DRIFT_SHARE:
            tries.insert(0, call(amount_gbp="660.00"))
        for attempt, text in enumerate(tries, start=1):
            attempts.add((case_id, attempt))
            made = proposal(case_id, call=text, attempt=attempt, actor_id=actor_of(case_id))
            # A repair comes after what it repairs; everything else may come again at any later time.
            at = number + 30.0 * (attempt - 1)
            placed.append((at, made))
            while rng.random() < REPEATED_SHARE:
                placed.append((at + rng.uniform(0, cases / 4), made))
        if rng.random() < FAULTY_SHARE:
            faults.append((rng.choice(BANK_FAULTS), key_of(case_id), rng.uniform(0.1, SETTLE_S / 2)))
    ordered = sorted(placed, key=lambda each: each[0])
    return Load([sent for _, sent in ordered], frozenset(attempts), faults)


def run(*, seed: int, cases: int, has_network: bool = False) -> Report:
    """One run, through a network that fails if it has one. Raises AssertionError if it does not settle."""
    load = load_of(seed, cases)
    started = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticketgate-chaos-")))
        kafka = Kafka(data=folder / "kafka")
        valkey = stack.enter_context(Valkey(data=folder / "valkey"))
        network = networks.before(stack, kafka, valkey) if has_network else None
        stack.enter_context(kafka)
        bank = stack.enter_context(PaymentServer(folder / "bank"))
        settings = {
            "FUNNEL": str(funnel_file(folder / "funnel.toml", bank, settle_s=SETTLE_S, timeout_s=0.7)),
            "ROLES": "propose,effects",
            "SESSION_TIMEOUT": f"{SESSION_S}s",
            "REDIS_TIMEOUT": "2s",
            "BATCH_SIZE": "16",
            "COMMIT_TIMEOUT": "10s",
            "TRANSACTION_TIMEOUT": "20s",
            **(network.settings if network else {}),
        }
        gate = stack.enter_context(Deployment(kafka.bootstrap, valkey.url, folder / "workers", settings))
        funnel = PaymentFunnel(gate, bank)
        for case_id in sorted({case_id for case_id, _ in load.attempts}):
            funnel.delegate(actor_of(case_id), cases=(case_id,))
        for fault, key, seconds in load.bank_faults:
            bank.fail(fault, key=key, seconds=seconds)
        scene = Scene(gate, kafka, valkey, SESSION_S, random.Random(seed), gate.start_worker, network=network)
        gate.start_worker().wait_ready(120)
        with failing(scene):
            send_while(scene, list(load.chunks(CHUNK)), topic="proposals", is_supervised=True)
        _settle(scene, funnel)
        report = _books(scene, funnel, load, seed=seed, seconds=time.monotonic() - started)
        if not report.is_clean:
            keep = Path(tempfile.mkdtemp(prefix=f"ticketgate-payments-seed-{seed}-"))
            for worker in gate.workers:
                (keep / worker.log_file.name).write_bytes(worker.log_file.read_bytes())
            for topic in ("dispatch", "review", "repairs", "receipts"):
                (keep / f"{topic}.json").write_text(json.dumps(funnel.records(topic)))
            (keep / "bank.json").write_text(json.dumps({k: asdict(v) for k, v in bank.ledger().items()}))
            print(f"logs kept in {keep}", file=sys.stderr)
        return report


def _settle(scene: Scene, funnel: PaymentFunnel) -> None:
    """Wait until both roles have taken all there is, and no outcome is open that reading back can close."""
    if not scene.running:
        scene.start_worker()
    funnel.wait_taken(SETTLE_TIMEOUT_S)
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while still := [
        each for each in newest(funnel).values() if each["effect_state"] in ("prepared", "unknown")
    ]:
        if time.monotonic() > deadline:
            print(f"{len(still)} outcomes stay open: {json.dumps(still)[:4000]}", file=sys.stderr)
            return
        time.sleep(1)


def newest(funnel: PaymentFunnel) -> dict[str, Record]:
    """The newest effect receipt of each key."""
    found: dict[str, Record] = {}
    for each in funnel.records("receipts"):
        if each["kind"] == "effect_receipt":
            key = each["idempotency_key"]
            if key not in found or each["sequence"] >= found[key]["sequence"]:
                found[key] = each
    return found


def _books(scene: Scene, funnel: PaymentFunnel, load: Load, *, seed: int, seconds: float) -> Report:
    decided = {topic: funnel.records(topic) for topic in ("dispatch", "repairs", "review")}
    decisions = [
        (each["case_id"], each["attempt"])
        for records in decided.values()
        for each in records
        if each["schema"] == "case-decision/1"
    ]
    times = Counter(decisions)
    receipts = newest(funnel)
    assert_consistent(funnel.records("receipts"))
    ledger = funnel.bank.ledger()
    transfers = {key: len(account.transfers) for key, account in ledger.items()}
    states = Counter(each["effect_state"] for each in receipts.values())
    return Report(
        seed=seed,
        faults=dict(scene.done),
        requests=dict(scene.network.done) if scene.network is not None else {},
        bank_faults=dict(Counter(fault for fault, _, _ in load.bank_faults)),
        cases=len({case for case, _ in load.attempts}),
        dispatched=len(decided["dispatch"]),
        repairs=len(decided["repairs"]),
        review=len(decided["review"]),
        decided_twice=sum(count - 1 for count in times.values()),
        undecided=len(load.attempts - times.keys()),
        committed=states["committed"],
        rejected=states["rejected"],
        absent=states["absent"],
        open=states["unknown"] + states["prepared"],
        transfers=sum(transfers.values()),
        made_twice=sum(max(0, count - 1) for count in transfers.values()),
        untold=sum(bool(count) and key not in receipts for key, count in transfers.items()),
        told_wrongly=sum(
            (each["effect_state"] == "committed") != bool(transfers.get(key))
            for key, each in receipts.items()
        ),
        most_sends=max((each["sends"] for each in receipts.values()), default=0),
        seconds=round(seconds, 1),
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--proposals", type=int, default=1_000)
    parser.add_argument("--network", action="store_true", help="through a network that fails")
    options = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    report = run(seed=options.seed, cases=options.proposals, has_network=options.network)
    print(json.dumps(asdict(report)))
    sys.exit(0 if report.is_clean else 1)


if __name__ == "__main__":
    main()
