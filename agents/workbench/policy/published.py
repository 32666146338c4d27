"""The JSON Schema of a policy, for editors: made from the models that read policies here.

It is kept as policy.schema.json beside this file (package data), and a test holds it current. To make it anew:

    .venv/bin/python -m ticketgate.agents.workbench.policy.published agents/policy/policy.schema.json

A schema cannot say all: which ids there are, which counts can be reached. `ticketgate policy lint` does.
"""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

from ticketgate.agents.policy.document import PolicyDocument
from ticketgate.codecs.records.published import json_schema


def policy_schema() -> bytes:
    """What must stand in the file: a JSON Schema of draft 2020-12."""
    return json_schema(PolicyDocument)


def published_schema() -> bytes:
    """What stands in the file that comes with the package."""
    return files("ticketgate.agents.policy").joinpath("policy.schema.json").read_bytes()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m ticketgate.agents.workbench.policy.published FILE")
    Path(sys.argv[1]).write_bytes(policy_schema())
