"""From a policy's file to a policy, or to everything that is wrong with it.

Promise: loading and reloading are one path. A policy is its own file and the schema that it names; `Files` remembers
what of each was read, so that who watches sees a change of either.
"""

from collections.abc import Callable
from pathlib import Path

from ticketgate.agents.policy.compile import compile_policy
from ticketgate.agents.policy.errors import UNNAMED, PolicyError, Problem, ProblemCode
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.written import read_document
from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.reading import text_of
from ticketgate.codecs.files.watched import Files

REMEDY = "set TICKETGATE_POLICY to a readable file"


def load_policy(path: Path, *, files: Files | None = None) -> Policy:
    """Read and check the policy at `path`. Raises PolicyError, also if there is no such file.

    files: filled with what was read, for who wants to see whether it changes.
    """
    files = Files() if files is None else files
    try:
        text = text_of(files.read(path, "policy", remedy=REMEDY), str(path))
    except FileFault as err:
        code: ProblemCode = "unreadable" if err.is_unreadable else "invalid"
        raise PolicyError(str(path), [Problem(err.line, err.what, err.remedy, code)]) from err
    return parse_policy(text, source=str(path), folder=path.parent, read=files.read)


def parse_policy(
    text: str,
    *,
    source: str = UNNAMED,
    folder: Path | None = None,
    read: Callable[[Path, str], bytes] | None = None,
) -> Policy:
    """The policy that a TOML or JSON text writes. Raises PolicyError.

    `source` names it in errors; `folder` is where a JSON Schema lies that it names, and `read` gives a file's bytes.
    """
    return compile_policy(read_document(text, source=source, folder=folder, read=read or Files().read))
