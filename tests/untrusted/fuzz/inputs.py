"""The kept corpus, and inputs made of it: what a seed makes of a number is always the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
# What readers stumble over, put in anywhere.
TOKENS = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b",",
        b":",
        b"\\",
        b"\n",
        b"\x00",
        b"\x7f",
        b"\xc2\x9b",
        b"\xff",
        b"\xed\xa0\x80",
    ),
    *(
        b"null",
        b"true",
        b"NaN",
        b"-0",
        b"1e999",
        b"9" * 40,
        b"0.1",
        b'""',
        b'"\\ud800"',
        b'{"a":1,"a":2}',
        b"[[[[",
    ),
    *(
        b"=",
        b"#",
        b"[[",
        b"'''",
        b'"""',
        b"a.b.c = 1\n",
        b"\xe2\x80\xae",
        b"{tenant}",
        b"${x}",
        b"redis://:p@h/0",
    ),
)
MOST_BYTES = 16_384


def corpus(name: str) -> list[bytes]:
    """What is kept for a reader, in the order of the files' names."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def inputs(name: str, count: int, seed: int = 0) -> Iterator[bytes]:
    """`count` inputs made of the corpus by cutting, repeating, exchanging, nesting and putting in."""
    kept, chance = corpus(name), random.Random(f"{seed} {name}")
    for _ in range(count):
        data = bytearray(chance.choice(kept))
        for _ in range(chance.randint(1, 6)):
            _change(data, kept, chance)
        yield bytes(data[:MOST_BYTES])


def _change(data: bytearray, kept: list[bytes], chance: random.Random) -> None:
    at = chance.randint(0, len(data))
    end = min(len(data), at + chance.choice((1, 2, 8, 64, 512)))
    match chance.randrange(7):
        case 0:
            del data[at:end]
        case 1:
            data[at:at] = chance.choice(TOKENS)
        case 2:
            data[at:at] = data[at:end] * chance.choice((1, 2, 50))
        case 3 if at < len(data):
            data[at] = chance.randrange(256)
        case 4:
            other = chance.choice(kept)
            begin = chance.randint(0, len(other))
            data[at:end] = other[begin : begin + chance.choice((8, 64, 512))]
        case 5:
            data[at:end] = chance.choice(TOKENS)
        case _:
            depth = chance.choice((1, 5, 70))
            data[:] = b"[" * depth + bytes(data) + b"]" * depth
