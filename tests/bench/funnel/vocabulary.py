"""The tokens of the toy model.

Promise: every text that the automata admit can be spelled, for each character that a call needs is a token too, as a
byte is in a real tokeniser. No token is or begins with JSON's white space, and none has a backslash, so that what the
automata say of these tokens' texts is exact.
"""

from __future__ import annotations

import string
from typing import Final

# Ends the answer; it has no text.
END: Final = "<end>"

_KEYS: Final = (
    "call_id",
    "tool",
    "arguments",
    "abstain",
    "account_id",
    "payee_id",
    "amount_gbp",
    "payment_date",
    "minimum_remaining_balance_gbp",
    "idempotency_key",
)
# Names that the model may write instead of a key.
WRONG_KEYS: Final = {
    "call_id": "id",
    "tool": "name",
    "arguments": "args",
    "account_id": "account",
    "payee_id": "payee",
    "amount_gbp": "amount",
    "payment_date": "date",
    "minimum_remaining_balance_gbp": "min_balance",
    "idempotency_key": "key",
}
_ADDED_KEYS: Final = ("currency", "note")
_PIECES: Final = (
    "quote",
    "schedule",
    "cancel",
    "refund",
    "change",
    "handle",
    "process",
    "_transfer",
    "transfer",
    "acct_",
    "demo",
    "other",
    "supplier_",
    "c_",
    "key_",
    "GBP",
    "£",
    "unsupported_operation",
    "missing_information",
    "ambiguous_request",
    "null",
    "true",
    "false",
)
_PROSE = ("I cannot do that.", "Done.", "```json")
_SIGNS = ("{", "}", "[", "]", ":", ",", '"', ",,", "=", "/", "-", ".", "_")

TOKENS: Final = tuple(
    dict.fromkeys(
        (
            END,
            *_SIGNS,
            *(f'"{key}"' for key in (*_KEYS, *WRONG_KEYS.values(), *_ADDED_KEYS)),
            *_PIECES,
            *_PROSE,
            *string.digits,
            *string.ascii_lowercase,
        )
    )
)
INDEX: Final = {token: place for place, token in enumerate(TOKENS)}
TEXTS: Final = tuple("" if token == END else token for token in TOKENS)

_LONGEST_FIRST = sorted((token for token in TOKENS if token != END), key=len, reverse=True)


def spell(text: str) -> tuple[str, ...]:
    """The tokens that write a text, at each place the longest. Raises ValueError where none fits."""
    found: list[str] = []
    place = 0
    while place < len(text):
        token = next((each for each in _LONGEST_FIRST if text.startswith(each, place)), None)
        if token is None:
            raise ValueError(f"no token writes {text[place]!r} in {text!r}; add it to the vocabulary")
        found.append(token)
        place += len(token)
    return tuple(found)
