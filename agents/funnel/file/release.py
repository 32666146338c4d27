"""Whether the effects of a funnel file may be automatic: each held to its cell of the release grid.

Promise: an automatic effect without a finding has everything that its cell asks for, seen in the file, the catalogue
and the provider where it can be seen there, and otherwise named. What can be seen is never taken from a claim. That a
named test or document shows what it is named for is its author's word; a named file (`./…`) is there.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ticketgate.agents.funnel.file.funnel_specs import CONTRIBUTIONS, FunnelFile, FunnelFileError
from ticketgate.agents.funnel.file.release_facts import CannotTell, Fails, Subject, readings, see
from ticketgate.agents.funnel.file.release_grid import release_grid
from ticketgate.codecs.values.malformed import quote
from ticketgate.codecs.values.strict import JsonValue

NOTHING_SHOWS_IT: Final = "nothing shows it"

# What people write where they have nothing yet: at the beginning and followed by a mark or nothing, in angle brackets,
# or alone.
_PLACEHOLDER: Final = re.compile(
    r"""^\W*(?:an?\s+)?(?:example|e\.?g|for\s+instance|sample|to\s?do|tb[adcw]|fix\s?me|placeholder|dummy|lorem(?:\s+ipsum)?|xx+|foo|bar
    |change\s?me|replace\s?me|fill\s+\w+|insert\s+\w+|your\s+\w+|see\s+above|coming\s+soon|to\s+be\s+\w+|to\s+follow)
    (?:\s*[:;,.!?=)\]>…-]|\s*$|\s+(?:be|by|for|goes|here|in|later|out|text|value)\b)
    |^\W*(?:n\s?/?\s?a|none|no|nil|null|nothing|unknown|pending|later|soon|yes|true|ok(?:ay)?|done|tested|fine|ja|nein)\W*$
    |<[^<>]*>|\{[^{}]*\}|\$\{?\w+|\[\s*[…._]+\s*\]""",
    re.IGNORECASE | re.VERBOSE,
)
_LETTERS: Final = re.compile(r"[^\W_]")
FEWEST_LETTERS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One requirement of a tool's cell. shown_by: the tests and documents that show it; empty if it does not stand,
    and then fault says why and remedy what to do."""

    requirement: str
    says: str
    shown_by: tuple[str, ...] = ()
    fault: str = ""
    remedy: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """The standing for programs."""
        return {
            "requirement": self.requirement,
            "says": self.says,
            "stands": not self.fault,
            "shown_by": list(self.shown_by),
            "fault": self.fault,
            "remedy": self.remedy,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRelease:
    """One tool against its cell. never: why no effect of this cell is automatic, whatever stands; else empty.
    remove_the_model: why a model should have no part in it, automatic or not; else empty."""

    tool: str
    provider: str
    contribution: str
    consequence: str
    automatic: bool
    never: str
    remove_the_model: str
    standings: tuple[Standing, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """The tool for programs."""
        return {
            "tool": self.tool,
            "provider": self.provider,
            "contribution": self.contribution,
            "consequence": self.consequence,
            "automatic": self.automatic,
            "never": self.never,
            "remove_the_model": self.remove_the_model,
            "requirements": [each.to_json() for each in self.standings],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFinding:
    """Why a tool's effect may not be automatic as declared. code: `forbidden`, `contribution_understated`,
    `remove_the_model`, `missing`, or `contradicted` by what can be seen."""

    tool: str
    code: str
    what: str
    remedy: str
    requirement: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """The finding for programs."""
        return {
            "tool": self.tool,
            "code": self.code,
            "requirement": self.requirement,
            "what": self.what,
            "remedy": self.remedy,
        }


def tool_releases(file: FunnelFile) -> tuple[ToolRelease, ...]:
    """Every tool of the file against its cell, the automatic ones and the others."""
    return tuple(_release(Subject(name, effect, file)) for name, effect in file.tools.items())


def check_release(file: FunnelFile) -> tuple[ReleaseFinding, ...]:
    """What keeps the file's automatic effects from being so; none for a tool that is not automatic."""
    return tuple(
        found
        for name, effect in file.tools.items()
        if effect.automatic
        for found in _findings(Subject(name, effect, file))
    )


def require_release(file: FunnelFile) -> None:
    """Refuse a file that declares automatic what may not be. Raises FunnelFileError, one line."""
    findings = check_release(file)
    if not findings:
        return
    tools = list(dict.fromkeys(found.tool for found in findings))
    first = findings[0]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    raise FunnelFileError(
        str(file.path),
        f"{', '.join(tools)} may not be automatic: {first.what}{more}",
        f"see `ticketgate release {file.path}`, or write automatic = false",
    )


def _release(subject: Subject) -> ToolRelease:
    effect, row = subject.effect, release_grid().cells[subject.effect.contribution]
    cell = row.cell(effect.consequence)
    return ToolRelease(
        tool=subject.name,
        provider=effect.provider,
        contribution=effect.contribution,
        consequence=effect.consequence,
        automatic=effect.automatic,
        never=cell if isinstance(cell, str) else "",
        # A policy's effect has left the model out already.
        remove_the_model="" if subject.tool is None else row.remove_the_model or "",
        standings=() if isinstance(cell, str) else tuple(_standing(each, subject) for each in cell),
    )


def is_placeholder(claim: str) -> bool:
    """Whether a claim only holds the place for what shows it: `example: …`, `TODO`, `n/a`, `<the report>`, `yes`."""
    return bool(_PLACEHOLDER.search(claim)) or len(_LETTERS.findall(claim)) < FEWEST_LETTERS


def _is_written(subject: Subject, claim: str) -> bool:
    """Whether a file that is named is there with something in it, and not what names it."""
    path = subject.file.path.parent / claim
    try:
        if path.samefile(subject.file.path.parent) or path.resolve() == subject.file.path.resolve():
            return False
        return any(path.iterdir()) if path.is_dir() else path.stat().st_size > 0
    except OSError:
        return False


def _standing(name: str, subject: Subject) -> Standing:
    requirement = release_grid().requirements[name]
    written = subject.effect.stands.get(name)
    claim = None if written is None or is_placeholder(written) else written
    given = () if claim is None else (claim,)
    seen = see(name, subject)
    if isinstance(seen, Fails):
        return Standing(requirement=name, says=requirement.says, fault=seen.why, remedy=seen.remedy)
    if isinstance(seen, CannotTell) and claim is None:
        remedy = f"name the test or document that shows it: tools.{subject.name}.stands.{name}"
        what = f"{quote(written)} is a placeholder: {NOTHING_SHOWS_IT}" if written else NOTHING_SHOWS_IT
        return Standing(requirement=name, says=requirement.says, fault=what, remedy=remedy)
    if claim is not None and claim.startswith(("./", "../")) and not _is_written(subject, claim):
        what, remedy = (
            f"there is no {claim} beside the funnel file",
            "name a file that is there, and not empty",
        )
        return Standing(requirement=name, says=requirement.says, fault=what, remedy=remedy)
    ours = () if isinstance(seen, CannotTell) or requirement.test is None else (requirement.test,)
    shown_by = (*ours, *given) or (
        "what comes along" if name == "mutations_refused" else "the ledger in Redis is this repository's own",
    )
    return Standing(requirement=name, says=requirement.says, shown_by=shown_by)


def _findings(subject: Subject) -> Iterator[ReleaseFinding]:
    name, release = subject.name, _release(subject)
    if release.never:
        yield ReleaseFinding(
            tool=name, code="forbidden", what=release.never, remedy="write automatic = false"
        )
    yield from _understated(subject)
    if release.remove_the_model:
        remedy = "take the tool out of the catalogue, or say what of it is the model's"
        yield ReleaseFinding(tool=name, code="remove_the_model", what=release.remove_the_model, remedy=remedy)
    for standing in release.standings:
        if standing.fault:
            yield ReleaseFinding(
                tool=name,
                code="missing" if standing.fault.endswith(NOTHING_SHOWS_IT) else "contradicted",
                requirement=standing.requirement,
                what=f"{standing.requirement}: {standing.fault}",
                remedy=standing.remedy,
            )


def _understated(subject: Subject) -> Iterator[ReleaseFinding]:
    """Fields that the model reads and the declared contribution does not own up to."""
    if subject.tool is None:
        return
    declared = subject.effect.contribution
    for field, contribution in readings(subject.tool).items():
        if CONTRIBUTIONS.index(contribution) > CONTRIBUTIONS.index(declared):
            yield ReleaseFinding(
                tool=subject.name,
                code="contribution_understated",
                what=f"{field} is the model's reading, so it contributes {contribution}, not {declared}",
                remedy=f'write contribution = "{contribution}", or bind the field in the request',
            )
