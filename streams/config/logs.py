"""Log lines that hold no secret and do nothing to the terminal that shows them, whichever library wrote them.

Promise: what a handler of ours writes has passed `redact` and `printable`; a message is one line. aiohttp's server says
of a request that it cannot read what stands in it, text and keys: it is not heard at all (web/connections.py says what
there is to say).
"""

from __future__ import annotations

import logging
import sys

from ticketgate.codecs.values.printable import printable
from ticketgate.codecs.values.redact import redact

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class SafeFormatter(logging.Formatter):
    """Formats as its base does, then hides what is secret and escapes what is not printable."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """The line without the traceback; a line feed in a message would forge the next line."""
        return super().formatMessage(record).replace("\n", "\\n").replace("\r", "\\r")

    def format(self, record: logging.LogRecord) -> str:
        """The line and, where there is one, the traceback."""
        return printable(redact(super().format(record)))


def configure_logging(level: str) -> None:
    """Log to stderr, one line each; libraries from warnings up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SafeFormatter(FORMAT))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("ticketgate").setLevel(level.upper())
    for name in ("aiohttp.server", "aiohttp.web"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
