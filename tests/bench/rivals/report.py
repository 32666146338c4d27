"""The tables: what each arm promises beside what it costs, as medians, with the least and the most; and with the model,
what is asked of ticketgate beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from .alone import Alone
from .arms import BASE
from .measuring import HALF, Latency, Side

HEAD = (
    "| | guarantee | in the storms | worker CPU, µs a ticket | ÷ {} | core busy | broker | Redis | tickets/s"
    " | peak MB | p50, p99 at half, ms | at 80 % |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
)
LATE = 3


def table(sides: Sequence[Side], base: Sequence[float], *, named: str) -> str:
    """Markdown. base: what each round is divided by, in µs a ticket, and its name."""
    return "\n".join([HEAD.format(named), *(_row(side, base) for side in sides)])


def base_costs(sides: Sequence[Side]) -> list[float]:
    """Of the loop that all are compared with, round by round; empty where it was left out."""
    return [each.worker_us for side in sides if side.arm.name == BASE for each in side.rounds]


def asked(sides: Sequence[Side], alone: Sequence[Alone], without: Sequence[Side]) -> str:
    """Markdown: with the model, and of `without` it, what ticketgate's figures are held to."""
    free = {side.arm.name: median(each.worker_us for each in side.rounds) for side in without}
    model = median(each.us for each in alone)
    batch = median(each.batch_ms for each in alone)
    told = []
    for side in sides:
        if side.arm.script is not None:
            continue
        cost = median(each.worker_us for each in side.rounds)
        most = model + free[side.arm.name] if side.arm.name in free else None
        told += [
            f"- {side.arm.title}: CPU {cost:.0f} µs a ticket; the model alone {model:.0f}"
            + (f", with the same worker without a model {most:.0f}" if most else ""),
            f"- {side.arm.title}: its core {100 * median(each.busy for each in side.rounds):.1f} % busy",
            *_late_beside(side, batch),
        ]
    for side in without:
        told += _late_beside(side, None) if side.arm.script is None else []
    return "\n".join(told)


def _late_beside(side: Side, batch_ms: float | None) -> list[str]:
    """p99 beside one batch scored and one transaction. batch_ms: of a full batch, by the model alone; None where no
    model answers, and deciding itself is what counts."""
    found = next((each for each in side.latencies if each.share == HALF and each.steps), None)
    if found is None:
        return []
    scored = found.steps["decide"] if batch_ms is None else batch_ms
    whose = side.arm.title if batch_ms is None else f"{side.arm.title}, with the model"
    transaction = found.steps["commit"]
    least = f"{LATE} times one batch scored ({scored:.1f}) and one transaction ({transaction:.1f})"
    return [
        f"- {whose}: p99 at half load {found.p99_ms:.0f} ms; {least}: {LATE * (scored + transaction):.0f}"
    ]


def _row(side: Side, base: Sequence[float]) -> str:
    rounds = side.rounds
    ratios = [mine.worker_us / its for mine, its in zip(rounds, base, strict=bool(base))]
    half, most = (_late(side.latencies, share) for share in (HALF, 0.8))
    return (
        f"| {side.arm.title} | {side.arm.guarantee} | {side.arm.storms}"
        f" | {spread(each.worker_us for each in rounds)} | {spread(ratios, digits=1)}"
        f" | {100 * median(each.busy for each in rounds):.0f} %"
        f" | {spread(each.broker_us for each in rounds)} | {spread(each.redis_us for each in rounds)}"
        f" | {median(each.tickets_per_s for each in rounds):.0f} | {side.peak_bytes / 1e6:.0f} | {half} | {most} |"
    )


def _late(latencies: Iterable[Latency], share: float) -> str:
    return next((f"{each.p50_ms:.0f}, {each.p99_ms:.0f}" for each in latencies if each.share == share), "-")


def spread(values: Iterable[float], *, digits: int = 0) -> str:
    """Median (least to most); a dash for none."""
    found = sorted(values)
    if not found:
        return "-"
    return f"{median(found):.{digits}f} ({found[0]:.{digits}f} to {found[-1]:.{digits}f})"
