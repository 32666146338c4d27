"""A mail without what its program or its sender puts below every mail.

By lines, with no library to lean on (see replies.py). The rule; what is longer than any signature stays:
1. Below a line "-- " (RFC 3676, 4.3), all.
2. "Sent from my …" and "Get Outlook for …", as a line of their own.
3. A notice of confidentiality, with all below it: its "legal" and "liable" are no words of the customer.
4. Below "Kind regards" and its like, names, titles, numbers and addresses, if nothing else stands there. The greeting
   itself stays.
"""

import re

# What follows the mark of a signature, at most: more is a text that happens to have one.
_MOST_CHARS = 2000
_MOST_DETAILS = 10
_LONGEST_DETAIL = 80
_MOST_WORDS = 8

_MARK = re.compile(r"^--[ \t\r]*$", re.MULTILINE)
_SENT = re.compile(
    r"^[ \t]*(?:Sent from my |Sent from Outlook|Get Outlook for )[^\n]{0,60}$\n?",
    re.MULTILINE | re.IGNORECASE,
)
_NOTICE = re.compile(
    r"^[ \t*_]*(?:this (?:e-?mail|message|communication)\b|the information (?:contained )?in this"
    r" (?:e-?mail|message)\b|confidentiality notice\b|disclaimer\b)[^\n]{0,300}\b(?:confidential|privileged|intended"
    r"|recipient)",
    re.MULTILINE | re.IGNORECASE,
)
_GREETINGS = frozenset(
    (
        "regards", "best regards", "kind regards", "kindest regards", "warm regards", "with kind regards",
        "best wishes", "with best wishes", "all the best", "best", "sincerely", "yours sincerely", "sincerely yours",
        "yours faithfully", "yours truly", "respectfully", "many thanks", "thanks", "thanks a lot", "thank you",
        "thanks in advance", "thank you in advance", "thanks and regards", "thanks & regards", "cheers", "yours",
    )
)  # fmt: skip


def without_signature(text: str) -> str:
    """The text without its signature; the same text where it has none."""
    cut = _SENT.sub("", text)
    for mark in (_first_near_end(_NOTICE, cut), _first_near_end(_MARK, cut)):
        if mark is not None and cut[:mark].strip():
            cut = cut[:mark]
    cut = _without_details(cut)
    return text if cut == text else cut.rstrip()


def _first_near_end(mark: re.Pattern[str], text: str) -> int | None:
    found = mark.search(text, max(0, len(text) - _MOST_CHARS))
    return None if found is None else found.start()


def _without_details(text: str) -> str:
    """Without what stands below the last greeting, if all of it is a sender's details."""
    end, taken = len(text), 0
    while end > 0 and taken <= _MOST_DETAILS:
        start = text.rfind("\n", 0, end) + 1
        line = text[start:end].strip()
        if line and line.rstrip(",.! ").lower() in _GREETINGS:
            return text[:end] if taken else text
        if line and not _is_detail(line):
            return text
        taken += bool(line)
        end = start - 1
    return text


def _is_detail(line: str) -> bool:
    """A name, a title, a number, an address: short, no sentence, and not begun in lower case, as sentences go on."""
    if len(line) > _LONGEST_DETAIL or len(line.split()) > _MOST_WORDS or line[-1] in "!?:":
        return False
    first = line.lstrip("+([*_|•- ")[:1]
    return (
        not first.isalpha()
        or first.isupper()
        or "@" in line
        or line.lower().startswith(("www.", "http", "tel", "mob"))
    )
