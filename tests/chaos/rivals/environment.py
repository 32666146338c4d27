"""A Python environment for the rivals that are no dependencies of ticketgate: made once, outside the repository."""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def rivals_python() -> Path:
    """The interpreter of the environment for the storms. Raises CalledProcessError if pip cannot install."""
    return environment_of(REQUIREMENTS)


def environment_of(requirements: Path) -> Path:
    """The interpreter of an environment of what a file names. Raises CalledProcessError if pip cannot install."""
    # Named by what it holds, so that changed requirements make another one.
    name = sha256(requirements.read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "ticketgate-rivals" / name
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"installing the rivals into {folder}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", requirements], check=True)
        (folder / "complete").touch()
    return python
