"""What a funnel file says, as values: where evidence is looked up, who carries effects out, which tool goes where."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import ConfigDict, Field
from ticketgate.agents.effects.states import States
from ticketgate.agents.funnel.catalogue import Catalogue

# What of an effect is the model's, from the least to the most.
Contribution = Literal["none", "wording", "choice", "arguments", "operation"]
# What it costs if the effect was wrong.
Consequence = Literal["reversible", "costly", "irreversible"]
CONTRIBUTIONS: tuple[Contribution, ...] = get_args(Contribution)
CONSEQUENCES: tuple[Consequence, ...] = get_args(Consequence)

_STRICT = ConfigDict(extra="forbid")
_Text = Annotated[str, Field(min_length=1, max_length=2048)]
_Name = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
# The name of an environment variable: secrets stand in none of our files.
_Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
# A lane waits for an answer so long, and everything behind it in the partition does too.
_Timeout = Annotated[float, Field(gt=0, le=600)]
_Bytes = Annotated[int, Field(ge=1024, le=16 * 2**20)]


class FunnelFileError(ValueError):
    """The funnel file cannot be used. One line: where, what, and the way out. A person edits the file."""

    def __init__(self, where: str, what: str, remedy: str) -> None:
        super().__init__(f"{where}: {what}; {remedy}")
        self.where, self.what, self.remedy = where, what, remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLookup:
    """authority: GET of url with {actor_id} in it; world: POST to url. token_env: the variable with a bearer token."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    adapter: Literal["http"] = "http"
    url: _Text
    timeout_s: _Timeout = 5.0
    max_bytes: _Bytes = 256 * 1024
    token_env: _Variable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisLookup:
    """GET of a key with places in it. url_env: the variable with the URL, where it has a password."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    adapter: Literal["redis"] = "redis"
    key: _Text
    url: _Text | None = None
    url_env: _Variable | None = None
    timeout_s: _Timeout = 5.0
    max_bytes: _Bytes = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedLookup:
    """Signed records beside the proposal. key_files: public keys (PEM), read relative to the funnel file; key_env:
    the variable with a shared secret."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    adapter: Literal["signed"] = "signed"
    algorithms: Annotated[tuple[str, ...], Field(min_length=1)]
    key_files: tuple[_Text, ...] = ()
    key_env: _Variable | None = None
    issuer: _Text | None = None
    audience: _Text | None = None
    max_lifetime_s: Annotated[float, Field(gt=0, le=86400)] = 300.0


LookupSpec = Annotated[HttpLookup | RedisLookup | SignedLookup, Field(discriminator="adapter")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSpecs:
    """Where authority and world state come from."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    authority: LookupSpec
    world: LookupSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpProvider:
    """A provider over HTTP. settle_s: how long after a request what it asked for may still be missing from what
    read_back_url shows; after that, missing is absent. idempotent_by_key: the provider's promise that one key has
    one effect."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    adapter: Literal["http"] = "http"
    url: _Text
    read_back_url: _Text | None = None
    idempotent_by_key: bool = False
    settle_s: Annotated[float, Field(ge=0, le=7 * 86400)] | None = None
    timeout_s: _Timeout = 10.0
    token_env: _Variable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisProvider:
    """A ledger in Redis, which is its own provider: idempotent by key, read back, nothing to settle. prefix: what its
    hash's name begins with, such as `payments:`."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    adapter: Literal["redis"] = "redis"
    prefix: _Text
    url: _Text | None = None
    url_env: _Variable | None = None
    timeout_s: _Timeout = 5.0


ProviderSpec = Annotated[HttpProvider | RedisProvider, Field(discriminator="adapter")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEffect:
    """Who carries a tool's effect out, and whether without a person.

    automatic: an accepted effect goes on without a new human decision; only where the release grid allows it.
    stands: by requirement of the grid, the test or document that shows it. states: which observed states stand, of a
    tool that the catalogue does not describe.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    provider: str
    contribution: Contribution
    consequence: Consequence
    automatic: bool = False
    states: States | None = None
    stands: Mapping[str, Annotated[str, Field(pattern=r"\S")]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The file as it is written."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    catalogue: _Text | None = None
    lookup: LookupSpecs | None = None
    providers: Mapping[_Name, ProviderSpec] = field(default_factory=dict)
    tools: Mapping[_Name, ToolEffect] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunnelFile:
    """A funnel file that can be used. path: where it lies; what it names lies relative to its folder."""

    path: Path
    catalogue: Catalogue | None
    lookup: LookupSpecs | None
    providers: Mapping[str, HttpProvider | RedisProvider]
    tools: Mapping[str, ToolEffect]

    @property
    def unprovided(self) -> tuple[str, ...]:
        """The catalogue's effects that nobody carries out: accepted, they go no further."""
        if self.catalogue is None:
            return ()
        return tuple(
            name for name, tool in self.catalogue.tools.items() if tool.is_effect and name not in self.tools
        )

    @property
    def states(self) -> Mapping[str, States]:
        """By tool, which observed states of its effect stand, where that is declared."""
        own = {name: tool.states for name, tool in self.tools.items() if tool.states is not None}
        return own if self.catalogue is None else {**own, **self.catalogue.states}

    def is_automatic(self, tool: str) -> bool:
        """Whether an accepted effect of that tool may be carried out without a new human decision."""
        return tool in self.tools and self.tools[tool].automatic
