"""A Python environment for the rivals that are no dependencies of ticketgate: made once, outside the repository."""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def rivals_python() -> Path:
    """The environment's interpreter. Raises CalledProcessError if pip cannot install."""
    # Named by what it holds, so that changed requirements make another one.
    name = sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "ticketgate-rivals" / name
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"installing the rivals into {folder}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS], check=True)
        (folder / "complete").touch()
    return python
