"""What a funnel file may not say though each field of it is well formed.

Names of nothing, places that cannot be filled, secrets in the open, and an effect that is automatic though nobody could
learn what became of it.
"""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from urllib.parse import urlsplit

from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.file.catalogue_file import state_faults
from ticketgate.agents.funnel.file.funnel_specs import (
    Document,
    HttpLookup,
    HttpProvider,
    RedisLookup,
    RedisProvider,
    SignedLookup,
    ToolEffect,
)
from ticketgate.agents.funnel.file.release_grid import release_grid
from ticketgate.agents.funnel.lookups.algorithms import PUBLIC_KEY_ALGORITHMS, SHARED_SECRET_ALGORITHMS
from ticketgate.agents.funnel.lookups.template import PLACES, Template, TemplateError
from ticketgate.codecs.files.positions import Path as Place
from ticketgate.codecs.values.redact import redact

# The place in the file, what is wrong, the remedy.
Fault = tuple[Place, str, str]

_PAGE = "write it as `ticketgate manual funnel` shows"


def contradictions(document: Document, catalogue: Catalogue | None) -> Iterator[Fault]:
    """What cannot be meant, in the file's order."""
    if (document.catalogue is None) != (document.lookup is None):
        has, lacks = ("lookup", "catalogue") if document.catalogue is None else ("catalogue", "lookup")
        remedy = "calls are judged by a catalogue and on evidence: write both, or neither for policies alone"
        yield (has,), f"{has} without {lacks}", remedy
    if document.lookup is not None:
        yield from _lookup_faults(("lookup", "authority"), document.lookup.authority, must=("actor_id",))
        yield from _lookup_faults(("lookup", "world"), document.lookup.world, must=())
    for name, provider in document.providers.items():
        yield from _provider_faults(("providers", name), provider)
    for name, tool in document.tools.items():
        yield from _tool_faults(("tools", name), tool, document, catalogue)


def _lookup_faults(
    place: Place, spec: HttpLookup | RedisLookup | SignedLookup, must: tuple[str, ...]
) -> Iterator[Fault]:
    told = dotted(place)
    if isinstance(spec, HttpLookup):
        yield from _url_faults((*place, "url"), spec.url)
        # The world's URL has no places: the whole request is in what is posted to it.
        yield from _template_faults((*place, "url"), spec.url, must, PLACES if must else ())
    elif isinstance(spec, RedisLookup):
        yield from _redis_faults(place, spec)
        yield from _template_faults(
            (*place, "key"), spec.key, must, (*PLACES, *(() if must else ("values.",)))
        )
    else:
        yield from _signed_faults(place, told, spec)


def _signed_faults(place: Place, told: str, spec: SignedLookup) -> Iterator[Fault]:
    known = (*PUBLIC_KEY_ALGORITHMS, *SHARED_SECRET_ALGORITHMS)
    for name in spec.algorithms:
        if name not in known:
            yield (*place, "algorithms"), f'{told}: no algorithm "{name}"', nearest(name, known)
    shared = [name for name in spec.algorithms if name in SHARED_SECRET_ALGORITHMS]
    if shared and len(shared) < len(spec.algorithms):
        # A verifier that took both could be given a public key as the secret.
        what = f"{told}: algorithms of a shared secret and of public keys together"
        yield (*place, "algorithms"), what, "list those of one kind"
    if shared and (spec.key_env is None or spec.key_files):
        yield (
            place,
            f"{told}: {shared[0]} has a shared secret",
            "name its variable in key_env, and no key_files",
        )
    if not shared and (spec.key_env is not None or not spec.key_files):
        what = f"{told}: {spec.algorithms[0]} has public keys"
        yield place, what, "name their PEM files in key_files, and no key_env"


def _provider_faults(place: Place, spec: HttpProvider | RedisProvider) -> Iterator[Fault]:
    told = dotted(place)
    if isinstance(spec, RedisProvider):
        yield from _redis_faults(place, spec)
        return
    yield from _url_faults((*place, "url"), spec.url)
    yield from _template_faults((*place, "url"), spec.url, (), ())
    if spec.read_back_url is None:
        if spec.settle_s is not None:
            what = f"{told}: settle_s without read_back_url"
            yield (*place, "settle_s"), what, "nothing is read back: add read_back_url, or remove settle_s"
        return
    yield from _url_faults((*place, "read_back_url"), spec.read_back_url)
    yield from _template_faults((*place, "read_back_url"), spec.read_back_url, ("key",), ())
    if spec.settle_s is None:
        # A default would declare absent, and send again, what a slow provider has yet to show.
        what = f"{told}: read_back_url without settle_s"
        yield place, what, "add the seconds after which what is missing there was not done"


def _tool_faults(
    place: Place, tool: ToolEffect, document: Document, catalogue: Catalogue | None
) -> Iterator[Fault]:
    told, name = dotted(place), str(place[-1])
    provider = document.providers.get(tool.provider)
    if provider is None:
        what = f'{told}: no provider "{tool.provider}"'
        remedy = nearest(tool.provider, list(document.providers)) if document.providers else "declare it"
        yield (*place, "provider"), what, remedy
    if catalogue is not None:
        described = catalogue.tools.get(name)
        if described is not None and not described.is_effect:
            yield place, f"{told}: {name} only observes", "remove it: there is no effect to carry out"
        if described is None and (near := get_close_matches(name, catalogue.tools, n=1, cutoff=0.85)):
            # Others may be a policy's effects, which no catalogue describes.
            yield place, f'{told}: the catalogue has "{near[0]}", not "{name}"', f'write "{near[0]}"'
    if catalogue is not None and name in catalogue.tools and tool.states is not None:
        yield (*place, "states"), f"{told}: the catalogue describes {name}", "declare its states there"
    yield from state_faults(place, tool.states)
    known = list(release_grid().requirements)
    for requirement in tool.stands.keys() - set(known):
        what = f'{told}.stands: the release grid has no requirement "{requirement}"'
        yield (*place, "stands", requirement), what, nearest(requirement, known)
    if tool.automatic and tool.consequence == "irreversible" and not can_read_back(provider):
        what = f'{told}: automatic and irreversible, but provider "{tool.provider}" cannot be read back'
        yield (*place, "automatic"), what, "add its read_back_url, or write automatic = false"


def can_read_back(provider: HttpProvider | RedisProvider | None) -> bool:
    """Whether what stands under a key can be asked for."""
    return isinstance(provider, RedisProvider) or (
        provider is not None and provider.read_back_url is not None
    )


def _url_faults(place: Place, url: str) -> Iterator[Fault]:
    told = dotted(place)
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        yield place, f"{told} is no URL", "write it as http://HOST:PORT/PATH"
        return
    if not is_url or any(char.isspace() for char in url):
        yield place, f"{told} is no URL", "write it as http://HOST:PORT/PATH"
    elif parts.username is not None or parts.password is not None or _holds_secret(parts.query):
        yield place, f"{told} carries a password", "name its variable in token_env"
    elif "{" in parts.netloc:
        yield place, f"{told} has a place in its host", "a record must not choose whom we ask: name the host"


def _holds_secret(query: str) -> bool:
    return redact(f"?{query}") != f"?{query}"


def _redis_faults(place: Place, spec: RedisLookup | RedisProvider) -> Iterator[Fault]:
    told = dotted(place)
    if (spec.url is None) == (spec.url_env is None):
        yield place, f"{told} needs url or url_env, one of them", "name the Redis: redis://HOST:PORT/DB"
    elif spec.url is not None and _scheme(spec.url) not in ("redis", "rediss", "unix"):
        yield (*place, "url"), f"{told}.url is no URL of a Redis", "write it as redis://HOST:PORT/DB"
    elif spec.url is not None and redact(spec.url) != spec.url:
        yield (*place, "url"), f"{told}.url carries a password", "name the URL's variable in url_env"


def _scheme(url: str) -> str:
    """A URL's scheme; empty for what is none."""
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""


def _template_faults(place: Place, text: str, must: tuple[str, ...], may: tuple[str, ...]) -> Iterator[Fault]:
    try:
        Template.read(text, must=must, may=tuple(each for each in may if each not in must))
    except TemplateError as err:
        yield place, f"{dotted(place)} {err}", _PAGE


def nearest(name: str, known: Sequence[str]) -> str:
    """A remedy that names the known name that was probably meant, else all."""
    near = get_close_matches(name, known, n=1)
    return f'did you mean "{near[0]}"?' if near else f"there are {', '.join(known)}"


def dotted(place: Place) -> str:
    """A place as people write it."""
    return ".".join(str(part) for part in place)
