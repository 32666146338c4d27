"""What the pages besides the README tell a reader to type, line by line, and how the tests hold each.

A line is typed by tests/test_pages_live.py, on a deployment as the README makes one, or it is listed with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What git does not keep, and pages that another reader than a person has.
_NOT_OURS = ("build", ".venv", "target", "node_modules", ".pytest_cache", "conformance", "dist")


@dataclass(frozen=True, slots=True)
class Block:
    """What stands in a fence. page: from the root. kind: the word behind the fence, or nothing."""

    page: str
    kind: str
    text: str

    @property
    def begins(self) -> str:
        """Its first line, by which the table below names it."""
        return self.text.splitlines()[0]

    @property
    def is_typed(self) -> bool:
        """Whether it is for a shell."""
        return self.kind in ("sh", "console")


def blocks() -> list[Block]:
    """Each block of each page, but the README's own, whose test runs them all."""
    found = []
    for path in sorted(ROOT.rglob("*.md")):
        page = str(path.relative_to(ROOT))
        if page == "README.md" or path.is_symlink() or set(path.relative_to(ROOT).parts) & set(_NOT_OURS):
            continue
        text = path.read_text(encoding="utf-8")
        for kind, block in re.findall(r"^```([a-z]*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            found.append(Block(page, kind, block))
    return found


def typed(block: Block) -> Iterator[str]:
    """Each command of a shell's block, without its comment; a document that stands in it belongs to its command."""
    lines = iter(block.text.splitlines())
    for line in lines:
        if block.kind == "console" and not line.startswith("$ "):
            continue  # what is printed
        command = re.sub(r"\s+#\s.*$", "", line.removeprefix("$ "))
        if (ends := re.search(r"<<'(\w+)'", command)) is not None:
            rest = []
            for each in lines:
                rest.append(each)
                if each == ends[1]:
                    break
            command = "\n".join([command, *rest])
        elif command.count("'") % 2:
            for each in lines:
                command += f"\n{each}"
                if "'" in each:
                    break
        yield command


@dataclass(frozen=True, slots=True)
class Live:
    """A line as the page has it, and what stands for its examples on that deployment. codes: how it may end.
    starts: it runs on."""

    line: str
    stands_for: tuple[tuple[str, str], ...] = ()
    codes: tuple[int, ...] = (0,)
    starts: bool = False

    def on(self, known: dict[str, str]) -> str:
        """The line with this deployment's names."""
        line = self.line
        for old, new in self.stands_for:
            line = line.replace(old, known.get(new, new))
        return line


_TICKET = (("T-1001", "T-1003"), ("--label review", "--label needs_agent"))

# Beside its workers, in this order.
WITH_WORKERS = (
    Live("curl -s http://127.0.0.1:6066/readyz"),
    Live("ticketgate policy lint policy.toml"),
    Live("ticketgate policy test policy.toml cases.toml"),
    Live("ticketgate consume dispatch > dispatched.jsonl"),
    Live(
        "ticketgate policy diff old.toml new.toml --decisions dispatched.jsonl",
        (("old.toml", "policy.toml"), ("new.toml", "edited.toml")),
        (0, 3),
    ),
    Live("ticketgate consume review > review.jsonl"),
    Live(
        "ticketgate policy rescore policy.toml --decisions review.jsonl --model NEW-FOLDER",
        (("NEW-FOLDER", "MODEL"),),
        (0, 3),
    ),
    Live(
        "(ticketgate consume dispatch; ticketgate consume repairs; ticketgate consume review)"
        " | grep 'invoice 205' | ticketgate case - > invoice-205.jsonl",
        (("invoice 205", "case-17"),),
    ),
    Live(
        "ticketgate funnel invoice-205.jsonl --catalogue payments",
        (("--catalogue payments", "--catalogue support.toml"),),
    ),
    Live("ticketgate reconcile"),
    Live(
        "ticketgate reconcile --read-back --all",
        (("--read-back", "--funnel support.funnel.toml --read-back"),),
    ),
    Live("ticketgate ledger show KEY", (("KEY", "EFFECT"),)),
    Live("ticketgate ledger show key-of-case-17", (("key-of-case-17", "EFFECT"),)),
    Live("ticketgate audit"),
    Live("ticketgate audit --of proposals"),
    Live("ticketgate audit --of review", codes=(0, 3)),
    Live("ticketgate claims show --ticket T-1001 --tenant acme", codes=(0, 3)),
    Live("ticketgate claims show --idempotency-key order-77-retry", codes=(0, 3)),
    Live("ticketgate claims show --case pay-77 --attempt 2", codes=(0, 3)),
    Live("ticketgate claims show 5f0c…", (("5f0c…", "EFFECT"),), codes=(0, 3)),
    Live("ticketgate consume review"),
    Live("head -c 32 /dev/urandom > front-desk.key"),
    Live(
        "cat > console-keys.toml <<'KEYS'\n[front-desk]\n"
        'algorithm = "HS256"               # or a public-key algorithm, with public_key_file here and'
        ' private_key_file at the console\nroles = ["read", "settle"]\nsecret_file = "front-desk.key"\nKEYS'
    ),
    Live(
        "TICKETGATE_CONSOLE_KEYS=console-keys.toml ticketgate worker --role settle --policy policy.toml",
        (("TICKETGATE_CONSOLE_KEYS", "TICKETGATE_WEB_PORT=0 TICKETGATE_CONSOLE_KEYS"),),
        starts=True,
    ),
    Live(
        "export TICKETGATE_CONSOLE_KEYS=console-keys.toml TICKETGATE_CONSOLE_KEY=front-desk"
        " TICKETGATE_POLICY=policy.toml"
    ),
    Live("ticketgate review list", codes=(0, 3)),
    Live("ticketgate review show T-1001", _TICKET, (0, 3)),
    Live(
        "ticketgate review settle T-1001 --accept --label billing --label review --label urgent",
        _TICKET,
        (0, 3),
    ),
    Live(
        "ticketgate review settle T-1001 --accept --label billing --label review --label urgent --yes",
        _TICKET,
    ),
    Live("ticketgate review export > labelled.jsonl"),
    Live("ticketgate audit --of settlements"),
)
# Once they have ended.
WITHOUT_WORKERS = (
    Live("ticketgate claims rebuild --dry-run"),
    Live("ticketgate claims rebuild"),
    Live("ticketgate ledger rebuild --dry-run"),
    Live("ticketgate ledger rebuild"),
    Live("ticketgate replay --replay-from marks"),
    Live("ticketgate replay --replay-from marks --yes"),
    Live("ticketgate replay --replay-from 2026-11-29T18:00:00Z"),
    Live("ticketgate replay --replay-from 2026-11-29T18:00:00Z --yes"),
)

_OPEN = "needs an effect that stays open: tests/streams/cli/test_effects.py::"
_REFUSED = "needs an effect that was refused: tests/streams/cli/test_effects.py::"
_CONSOLE = "who may come in: tests/streams/cli/test_console.py, tests/streams/console/door/test_people.py"
_BY_HASH = "needs a policy that a record names: tests/streams/operations/test_policies.py"
_BENCH = "a measurement of minutes or more, which `make bench` or `make chaos` runs"
_MODEL = "trains the model: an hour, and data that are fetched"
# What is not typed by a test, and why. It is still read: its commands, options, modules, files and targets are there.
LISTED = {
    "make install": "each test stands on it",
    "make kafka-jars": "fetches Apache Kafka; tests of Kafka stand on it",
    "make test": "these tests",
    "make bench": _BENCH,
    ".venv/bin/pytest tests/streams/lane/test_lane.py -k fenced": "a test of itself",
    "ticketgate demo": "tests/streams/cli/test_demo.py::",
    "ticketgate produce streams/samples/tickets.jsonl --unchecked": "what the demo sends",
    "ticketgate worker --policy streams/samples/support.toml": "as the README's worker, with the demo's policy",
    'ticketgate review settle T-1002 --reject --why "a test message" --yes': "tests/streams/cli/review/",
    'ticketgate review forget "Ada Lovelace"': "tests/streams/cli/review/",
    "ticketgate ledger dispatch KEY": _REFUSED,
    "ticketgate ledger dispatch KEY --yes": _REFUSED,
    "ticketgate ledger dispatch key-of-case-17": _REFUSED,
    "ticketgate ledger dispatch key-of-case-17 --yes": _REFUSED,
}
# Lines that begin so are listed for one reason.
LISTED_KINDS = {
    "export TICKETGATE_CONSOLE_USERS=": _CONSOLE,
    "ticketgate console": _CONSOLE,
    "ticketgate policy show --hash ": _BY_HASH,
    "ticketgate policy diff hash:": _BY_HASH,
    "ticketgate reconcile --settle ": _OPEN,
    ".venv/bin/python -m tests.bench.": _BENCH,
    ".venv/bin/python -m tests.chaos.": _BENCH,
    "python3 -m venv /tmp/model-venv": _MODEL,
    "mvn -q dependency:copy": _MODEL,
    "/tmp/model-venv/bin/python deploy/model/": _MODEL,  # noqa: S108 - a page's words
    ".venv/bin/python deploy/model/": _MODEL,
    ".venv/bin/python -c": "tests/agents/scoring/test_default_model.py::",
}
# Blocks that are no shell's: the test that reads them, or what they are. By page and the beginning of the first line.
HELD = {
    ("ARCHITECTURE.md", "   producers"): "a picture",
    ("agents/effects/README.md", "stateDiagram"): (
        "tests/agents/effects/test_page.py::test_every_state_and_each_way_between_them_is_drawn"
    ),
    ("agents/effects/README.md", "POST /transfers"): (
        "tests/agents/effects/test_page.py::test_the_page_names_the_headers_the_statuses_and_files_that_are_there"
    ),
    ("agents/funnel/README.md", ""): "tests/agents/funnel/test_page.py::",
    ("agents/policy/README.md", ""): "tests/agents/policy/test_policy_readme.py::",
    ("codecs/systemone/README.md", ""): "tests/codecs/test_systemone_page.py::",
    ("deploy/RUNBOOK.md", "ACL SETUSER"): "tests/store/test_acl.py::",
    ("tests/bench/README.md", "40 labels"): "what a measurement printed",
    ("tests/bench/README.md", "1,000,000 rows and 20"): "what a measurement printed",
    ("tests/streams/lane/model/README.md", ""): "tests of themselves",
}
# Shell blocks that another test types, output and all.
TYPED_ELSEWHERE = {
    ("agents/funnel/README.md", "$ ticketgate funnel --example"): (
        "tests/agents/funnel/test_page.py::test_the_shown_command_prints_what_is_shown"
    ),
}


def reason_of(line: str) -> str | None:
    """Why a line is not typed; None if nothing says so."""
    return LISTED.get(line) or next(
        (why for begins, why in LISTED_KINDS.items() if line.startswith(begins)), None
    )
