"""Questions of whole fields of work, "Is this a matter of card payments?", about banking77's training texts.

fields.toml says which intents belong to a field; of a text whose intent may belong to it or not, nothing is asked.
"""

import random
import tomllib
from pathlib import Path

from triage import Row

HERE = Path(__file__).parent
FRAMES = (
    "Is this about {}?",
    "Does the customer write about {}?",
    "Is this a matter of {}?",
    "Should whoever looks after {} get this?",
    "Is it a question on {}?",
    "Does this belong to {}?",
    "Is the ticket to do with {}?",
    "Is the trouble with {}?",
)


def field_rows(corpus, chance: random.Random) -> list[Row]:
    """Each text with the field that its intent belongs to, and with two others."""
    fields = tomllib.loads((HERE / "fields.toml").read_text())
    made = []
    for text, intent in corpus.banking:
        own = [name for name, field in fields.items() if intent in field["intents"]]
        others = [name for name, f in fields.items() if intent not in {*f["intents"], *f["perhaps"]}]
        for name in own + chance.sample(others, min(2, len(others))):
            question = chance.choice(FRAMES).format(chance.choice(fields[name]["words"]))
            made.append(Row(text, question, float(name in own), f"field:{name}"))
    return made
