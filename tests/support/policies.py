"""The seed's policy and answers for it, as files for workers."""

from pathlib import Path

FOLDER = Path(__file__).parent / "files"
SEED_POLICY = FOLDER / "seed.toml"
FIXED_ANSWERS = FOLDER / "answers.json"
