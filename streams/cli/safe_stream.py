"""The standard streams of a command, on which nothing from outside acts on a terminal."""

from __future__ import annotations

import io
import os
import re
import sys
from typing import Any, TextIO, cast


def guard_standard_streams() -> None:
    """From here on, what this process writes as text to stdout and stderr is escaped, and each of the three streams is
    there, whatever the process was started with."""
    _open_what_is_closed()
    if not isinstance(sys.stdout, SafeStream):
        for stream in (sys.stdout, sys.stderr):
            # An output in ASCII or Latin-1 shows what it lacks as an escape.
            if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
                stream.reconfigure(errors="backslashreplace")
        sys.stdout = cast("TextIO", SafeStream(sys.stdout))
        sys.stderr = cast("TextIO", SafeStream(sys.stderr, is_talk=True))


def _open_what_is_closed() -> None:
    """A descriptor that was closed before the start would be the next file's or socket's, and be written to."""
    # What is read then fails, rather than to look like nothing: so the wrong way round for stdin.
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY)
    sys.stdin = sys.stdin or io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    sys.stdout = sys.stdout or io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8")
    sys.stderr = sys.stderr or io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8")


# What rich colours by. Nothing else of what begins with an escape passes.
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


class SafeStream:
    """A text stream on which what is not printable is escaped, whoever writes it; bytes behind it are not its concern.

    is_talk: what is written is for people and not a result, so secrets are hidden too.
    """

    def __init__(self, stream: TextIO, *, is_talk: bool = False) -> None:
        self._stream, self._is_talk = stream, is_talk

    def write(self, text: str) -> int:
        """Write `text`, escaped; colours stay on a terminal."""
        size = len(text)
        if not self._is_talk and _is_plain(text):
            self._stream.write(text)
            return size
        # Here, for they come with all codecs, and `--help` is quick without.
        from ticketgate.codecs.values.printable import printable
        from ticketgate.codecs.values.redact import redact

        if self._is_talk:
            text = redact(text)
        if self._stream.isatty():
            pieces = _COLOUR.split(text)
            pieces[::2] = [printable(piece.replace("\r", "")) for piece in pieces[::2]]
            self._stream.write("".join(pieces))
        else:
            self._stream.write(printable(text))
        return size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.replace("\n", "").isprintable()
