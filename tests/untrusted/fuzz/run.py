"""One reader under the coverage-guided fuzzer: `python -m tests.untrusted.fuzz.run TARGET FOLDER… [-options]`."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(  # pyright: ignore[reportAttributeAccessIssue]  # it says so itself
    include=["ticketgate"], enable_loader_override=False
):
    from tests.untrusted.fuzz.targets import TARGETS


def main() -> None:
    """Fuzz until told to end; an input that breaks a promise is written to a file and ends it."""
    name, *rest = sys.argv[1:]
    target = TARGETS[name]

    def one(data: bytes) -> None:
        target(data)

    atheris.Setup([sys.argv[0], *rest], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
