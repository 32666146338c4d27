"""The table: what each arm promises beside what it costs, as medians, with the least and the most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from .arms import BASE
from .measuring import Latency, Round, Side

HEAD = (
    "| | guarantee | in the storms | worker CPU, µs a ticket | ÷ aiokafka loop | broker | Redis | tickets/s"
    " | peak MB | p50, p99 at half, ms | at 80 % |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def table(sides: Sequence[Side]) -> str:
    """Markdown."""
    base = next((side.rounds for side in sides if side.arm.name == BASE), None)
    return "\n".join([HEAD, *(_row(side, base) for side in sides)])


def _row(side: Side, base: Sequence[Round] | None) -> str:
    rounds = side.rounds
    ratios = [mine.worker_us / its.worker_us for mine, its in zip(rounds, base or (), strict=bool(base))]
    half, most = (_late(side.latencies, share) for share in (0.5, 0.8))
    return (
        f"| {side.arm.title} | {side.arm.guarantee} | {side.arm.storms}"
        f" | {spread(each.worker_us for each in rounds)} | {spread(ratios, digits=1)}"
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
