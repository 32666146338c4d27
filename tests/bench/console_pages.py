"""How long the console takes over a page with many waiting: `python -m tests.bench.console_pages ROWS [MINUTES]`.

ROWS wait in the view (what is fed in MINUTES, 8 unless told, if that is less), and 20 real tickets among them, spread
from the oldest to the newest. The pages are asked for by HTTP, one after another, of the console's own application,
in this process. Prints of each page p50 and p95 of the time that the asker waited and of the processor's, console
and asker together; then, by the console's own histogram, the bucket below which 95 of 100 answers stayed.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from aiohttp.test_utils import TestClient, TestServer
from ticketgate.streams.console.app import console_application
from ticketgate.streams.console.desk.console_desk import now_ms
from ticketgate.streams.console.door.people import People
from yarl import URL

from ..streams.console.conftest import door_settings, sign_in
from ..support.deciding import SUPPORT
from ..support.desk import RIGHT
from ..support.still_desk import HOUR_MS, StillDesk
from .review_view import BATCH, NOW, rows

CALLS = 100
TICKETS = 20
CHOICE = "&".join(["chosen=1", *(f"q%3A{each}={each}" for each in RIGHT)])


def fill(still: StillDesk, count: int, minutes: float) -> int:
    """Rows and tickets; how many rows there are."""
    for number in range(TICKETS):
        still.lay(f"real-{number}", hours_old=1 + number * count * 10 / HOUR_MS / TICKETS)
    start, shift = time.perf_counter(), now_ms() - NOW
    done = 0
    with still.view() as view:
        while done < count and time.perf_counter() - start < minutes * 60:
            # `rows` lays them in partitions 0 to 5, where the tickets lie already.
            made = [
                replace(each, place=f"review:{1 + n % 6}:{n // 6}", at_ms=each.at_ms + shift)
                for n, each in enumerate(rows(done, min(done + BATCH, count), count), done)
            ]
            view.add(made, {("review", 1): done})
            done += len(made)
    took = time.perf_counter() - start
    print(f"{done:,} rows and {TICKETS} tickets, fed in {took:.0f} s", flush=True)
    return done


async def timed(name: str, call: Callable[[int], Awaitable[int]]) -> None:
    """Ask, and print how long it took."""
    waited, computed = list[float](), list[float]()
    for number in range(CALLS):
        start, cpu = time.perf_counter(), time.process_time()
        status = await call(number)
        waited.append((time.perf_counter() - start) * 1000)
        computed.append((time.process_time() - cpu) * 1000)
        if status != 200:
            raise SystemExit(f"{name}: {status}")
    waited.sort()
    computed.sort()
    half, most = CALLS // 2, CALLS * 95 // 100
    print(
        f"{name:<34} waited p50 {waited[half]:7.1f} ms  p95 {waited[most]:7.1f} ms   "
        f"processor p50 {computed[half]:7.1f} ms  p95 {computed[most]:7.1f} ms",
        flush=True,
    )


async def main(count: int, minutes: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "policy.toml").write_text(SUPPORT)
        still = StillDesk(door_settings(Path(folder), policy=f"{folder}/policy.toml"))
        fill(still, count, minutes)
        with still.view() as view:
            found = [view.find(f"real-{number}", now_ms=now_ms())[0] for number in range(TICKETS)]
            middle = found[TICKETS // 2].id
        application = console_application(still.settings, People(still.settings), desk=still.opening)
        client = TestClient(TestServer(application))
        await client.start_server()
        await sign_in(client)

        async def get(path: str) -> int:
            async with client.get(URL(path, encoded=True)) as response:
                await response.read()
                return response.status

        def page(path: str) -> Callable[[int], Awaitable[int]]:
            return lambda _: get(path)

        pages = {
            "list": page("/"),
            "list, from the middle": page(f"/?after={middle}"),
            "a rule": page("/?rule=rule-3"),
            "rule, label and tenant": page("/?rule=rule-3&label=label-5&tenant=t2"),
            "two that never hold together": page("/?rule=even&label=odd"),
            "words that most have": page("/?words=card+refund"),
            "words that never stand together": page("/?words=even+odd"),
            "words and a rule": page("/?words=card+refund&rule=rule-3"),
            "what has expired": page("/?state=expired"),
            "a ticket": lambda number: get(f"/ticket/{found[number % TICKETS].key}"),
            "a ticket with labels chosen": lambda number: get(
                f"/ticket/{found[number % TICKETS].key}?{CHOICE}"
            ),
            "presses": page("/presses"),
        }
        for name, call in pages.items():
            await timed(name, call)
        async with client.get("/metrics") as response:
            told(await response.text())
        await client.close()


def told(metrics: str) -> None:
    """Print what 95 of 100 answers of a route stayed below."""
    for line in metrics.splitlines():
        if line.startswith("ticketgate_console_request_duration_seconds_count"):
            route = line.partition("{")[2].rpartition("}")[0]
            whole = float(line.rpartition(" ")[2])
            bounds = [
                each.rpartition('le="')[2].partition('"')[0]
                for each in metrics.splitlines()
                if "_request_duration_seconds_bucket" in each
                and all(part in each for part in route.split(","))
                and float(each.rpartition(" ")[2]) >= 0.95 * whole
            ]
            print(f"server time p95 below {bounds[0]} s, {whole:.0f} of {route}")


if __name__ == "__main__":
    asyncio.run(
        main(
            int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, float(sys.argv[2]) if len(sys.argv) > 2 else 8
        )
    )
