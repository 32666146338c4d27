"""From a policy's file to a policy, or to everything that is wrong with it."""

from pathlib import Path

from ticketgate.agents.policy.compile import compile_policy
from ticketgate.agents.policy.errors import UNNAMED, PolicyError, Problem
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.written import MAX_POLICY_BYTES, read_document


def load_policy(path: Path) -> Policy:
    """Read and check the policy at `path`. Raises PolicyError, also if there is no such file."""
    return parse_policy(read_policy_text(path), source=str(path), folder=path.parent)


def read_policy_text(path: Path) -> str:
    """What stands in the policy's file. Raises PolicyError if that is no text, or more than a policy may have."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_POLICY_BYTES + 1)
    except OSError as err:
        what = f"the policy cannot be read: {err.strerror or err}"
        raise PolicyError(
            str(path), [Problem(None, what, "set TICKETGATE_POLICY to a readable file", "unreadable")]
        ) from err
    if len(content) > MAX_POLICY_BYTES:
        what = f"larger than the {MAX_POLICY_BYTES} bytes that a policy may have"
        raise PolicyError(str(path), [Problem(None, what, "set TICKETGATE_POLICY to the policy's file")])
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as err:
        line = content.count(b"\n", 0, err.start) + 1
        what = f"not UTF-8: byte 0x{content[err.start]:02x}"
        raise PolicyError(str(path), [Problem(line, what, "save the file as UTF-8")]) from None
    if text.startswith("\ufeff"):
        raise PolicyError(
            str(path), [Problem(1, "begins with a byte order mark", "save the file as UTF-8 without one")]
        )
    return text


def parse_policy(text: str, *, source: str = UNNAMED, folder: Path | None = None) -> Policy:
    """The policy that a TOML or JSON text writes. Raises PolicyError.

    `source` names it in errors; `folder` is where a JSON Schema lies that it names.
    """
    return compile_policy(read_document(text, source=source, folder=folder))
