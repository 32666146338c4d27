"""Pages from templates, and static files under the hash of their content.

Promise: what a template is given can never become markup (autoescape cannot be left out), a name that it is not given
is an error, and a static file whose address is known never changes, so that browsers may keep it. No request reads
the disk.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from pathlib import Path

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from ticketgate.streams.console.caller import CSRF, REQUEST_ID, USER
from ticketgate.streams.console.words import many, say
from ticketgate.streams.operations.review.moments import age, moment

HERE = Path(__file__).parent
STATIC_PATH = "/static/"
# A year: the longest that is meant by anybody.
KEPT = "public, max-age=31536000, immutable"
HASH_CHARS = 16
# Those of the standard library depend on the machine's own list.
TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain",
}


class Statics:
    """The static files of a folder, in memory. `/static/HASH/NAME`, so that one may name its neighbours."""

    def __init__(self, folder: Path) -> None:
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.startswith((".", "__"))
        }
        # One hash for all: a style sheet's own addresses of neighbours are relative, and stay right.
        whole = hashlib.sha256()
        for name, content in files.items():
            whole.update(f"{name}\0{len(content)}\0".encode() + content)
        self._prefix = f"{STATIC_PATH}{whole.hexdigest()[:HASH_CHARS]}/"
        self._files: Mapping[str, tuple[bytes, str]] = {
            self._prefix + name: (content, _type_of(name)) for name, content in files.items()
        }

    def url(self, name: str) -> str:
        """The address of a file. Raises KeyError for one that is not there."""
        if self._prefix + name not in self._files:
            raise KeyError(f"no static file {name!r}")
        return self._prefix + name

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """The file, or 404."""
        found = self._files.get(request.path)
        if found is None:
            raise web.HTTPNotFound
        body, content_type = found
        charset = "utf-8" if content_type.startswith(("text/", "image/svg")) else None
        return web.Response(
            body=body, content_type=content_type, charset=charset, headers={"Cache-Control": KEPT}
        )


class Pages:
    """The templates of a folder."""

    def __init__(self, folder: Path, statics: Statics) -> None:
        self.environment = Environment(
            loader=FileSystemLoader(folder),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self.environment.globals.update(static=statics.url, say=say, many=many)
        self.environment.filters.update(age=age, moment=moment)

    def text(self, template: str, context: Mapping[str, object]) -> str:
        """A template, filled in."""
        return self.environment.get_template(template).render(context)


PAGES: web.AppKey[Pages] = web.AppKey("pages", Pages)
STATICS: web.AppKey[Statics] = web.AppKey("statics", Statics)


def set_up_rendering(application: web.Application) -> None:
    """Read the static files, and open the templates."""
    application[STATICS] = Statics(HERE / "static")
    application[PAGES] = Pages(HERE / "templates", application[STATICS])


def render(request: web.Request, template: str, /, *, status: int = 200, **context: object) -> web.Response:
    """A page. The template also knows `request` (its path and query), `user` (None where nobody is signed in), `csrf`
    (for forms) and `static(name)`."""
    known = {
        "request": request,
        "request_id": request.get(REQUEST_ID, ""),
        "user": request.get(USER),
        "csrf": request.get(CSRF, ""),
    }
    return web.Response(
        text=request.app[PAGES].text(template, {**known, **context}), status=status, content_type="text/html"
    )


def redirection(address: str) -> web.Response:
    """Go on there, with GET: what follows a form that was taken."""
    return web.Response(status=303, headers={"Location": address})


def _type_of(name: str) -> str:
    return TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
