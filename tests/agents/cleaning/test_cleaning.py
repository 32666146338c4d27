"""What is taken off a mail before a model reads it, and what stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.cleaning import STEPS, Step, clean
from ticketgate.codecs.values.strict import JsonValue

HTML_MAIL = """<!doctype html><html><head><title>Mail</title><style>p { color: red }</style></head><body>
<div style="display: none">Preview text that nobody sees</div>
<p>My <b>boiler</b> leaks &amp;\n the floor is wet.<br>Please come.</p>
<table><tr><td>Model</td><td>K-20</td></tr></table>
<script>track("urgent")</script>
<div class="gmail_signature">--<br>Ada Byron<br>Flat 3</div>
<div>On Tue, 4 Mar 2025 at 10:01, Help &lt;help@example.org&gt; wrote:</div>
<blockquote>How can we <i>help</i>?<blockquote>An older one</blockquote></blockquote></body></html>"""


def test_html_is_read_as_it_is_seen() -> None:
    assert clean(HTML_MAIL, ["html"]) == (
        "My boiler leaks & the floor is wet.\nPlease come.\nModel K-20\n--\nAda Byron\nFlat 3\n"
        "On Tue, 4 Mar 2025 at 10:01, Help <help@example.org> wrote:\n> How can we help?\n> An older one"
    )


def test_all_steps_leave_what_the_customer_wrote() -> None:
    cleaned = clean(HTML_MAIL, STEPS)

    assert cleaned == "My boiler leaks & the floor is wet.\nPlease come.\nModel K-20"
    assert clean(HTML_MAIL, tuple(reversed(STEPS))) == cleaned


OWN = "It still leaks.\n"
STAYS: dict[str, tuple[Step, str]] = {
    "a comparison": ("html", "if a < b and b > c, x<y"),
    "an address in angle brackets": ("html", "Write to Ada <ada@example.org>, please"),
    "a tag that HTML does not know": ("html", "set <timeout> to <n>"),
    "no quote": ("quoted_replies", "5 > 4, she wrote: nothing.\n\nOn the phone I was told to wait.\n"),
    "a wrote without a date": ("quoted_replies", "On the card she wrote:\nget well\n"),
    "what is forwarded": (
        "quoted_replies",
        "See below.\n---------- Forwarded message ---------\nFrom: A\nDate: 3 May\nTo: B\n\nOn 3 May A wrote:\nall\n",
    ),
    "a mail that begins with a head": ("quoted_replies", "\nFrom: A\nSent: today\nTo: B\n\nthe mail\n"),
    "From: in a sentence": ("quoted_replies", "My route.\nFrom: Rome\nVia: Pisa\nI went home.\n"),
    "a rule between two parts": ("signatures", "one\n--\n" + "a long second part. " * 120),
    "a sentence below thanks": ("signatures", "The tap drips.\nThanks,\nplease also stop my plan.\n"),
    "a question below a greeting": ("signatures", "The tap drips.\nKind regards\nWhen do you come?\n"),
    "nothing but a mark": ("signatures", "--\nAda"),
    "a greeting alone": ("signatures", "The tap drips.\nBest wishes\n"),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_a_rule_is_not_sure_of_stays(name: str) -> None:
    step, text = STAYS[name]

    assert clean(text, [step]) == text


GOES: dict[str, tuple[Step, str, str]] = {
    "lines with >": (
        "quoted_replies",
        f"{OWN}> How is it?\n>> older\nYou asked, so I answer.\n",
        f"{OWN}You asked, so I answer.",
    ),
    "answers between quotes": ("quoted_replies", "On 3 May Ann wrote:\n> one?\nyes\n> two?\nno\n", "yes\nno"),
    "wrote, on two lines": (
        "quoted_replies",
        f"{OWN}\nOn Tue, 4 Mar 2025 at 10:01, A Very Long Name\n<help@example.org> wrote:\n\nHow is it?\n",
        OWN.strip(),
    ),
    "wrote, in another program's language": (
        "quoted_replies",
        f"{OWN}Am 04.03.2025 um 10:01 schrieb Hilfe:\n> a\n",
        OWN.strip(),
    ),
    "an original message": (
        "quoted_replies",
        f"{OWN}-----Original Message-----\nFrom: Help\nHow is it?\n",
        OWN.strip(),
    ),
    "a head below one's words": (
        "quoted_replies",
        f"{OWN}\nFrom: Help <h@example.org>\nSent: Tuesday 10:01\nTo: Ada\nSubject: tap\n\nHow is it?\n",
        OWN.strip(),
    ),
    "below the mark": ("signatures", f"{OWN}-- \nAda Byron\n+44 20 0000\n", OWN.strip()),
    "a phone's line": ("signatures", f"{OWN}\nSent from my phone\n", OWN.strip()),
    "a notice": (
        "signatures",
        f"{OWN}This email and its attachments are confidential and intended for one.\nLegal action may follow.\n",
        OWN.strip(),
    ),
    "details below a greeting": (
        "signatures",
        f"{OWN}Kind regards,\nAda Byron\nHead of Taps\n+44 20 0000\nada@example.org\n",
        f"{OWN}Kind regards,",
    ),
}


@pytest.mark.parametrize("name", GOES)
def test_what_goes(name: str) -> None:
    step, text, left = GOES[name]

    assert clean(text, [step]) == left


def test_lines_may_end_as_windows_writes_them() -> None:
    text = f"{OWN}> old\r\nOn 3 May Ann wrote:\r\n\r\n> older\r\n-- \r\nAda\r\n".replace(
        "leaks.\n", "leaks.\r\n"
    )

    assert clean(text, STEPS) == OWN.strip()


def test_every_text_of_a_state_is_cleaned_and_nothing_else_changes() -> None:
    state = {"subject": "tap", "parts": [{"<p>": "<p>It drips.</p>"}, "a\n> b", 3, None, True], "-- ": 1.5}

    assert clean(state, STEPS) == {
        "subject": "tap", "parts": [{"<p>": "It drips."}, "a", 3, None, True], "-- ": 1.5,
    }  # fmt: skip
    assert state["parts"] == [{"<p>": "<p>It drips.</p>"}, "a\n> b", 3, None, True]


def test_no_step_gives_the_state_itself() -> None:
    state: JsonValue = {"a": ["<p>x</p>"]}

    assert clean(state, []) is state


_PIECES = st.sampled_from(
    ("<p>", "</p>", "<blockquote>", "</div>", "<script>", "<a ", "<", ">", "&amp;", "&#0;", "\n", "> ", "--\n", "\r\n",
     "On 3 May Ann wrote:\n", "From: a\n", "Sent: b\nTo: c\n", "Kind regards\n", "Ada", "Sent from my phone\n", "\x00",
     "<!--", "]]>", "<?xml version='1.0' encoding='latin-1'?>", "\u2028", "\U0001f600", "é")
)  # fmt: skip


@given(st.lists(_PIECES | st.text(max_size=4), max_size=30).map("".join), st.sets(st.sampled_from(STEPS)))
def test_every_text_can_be_cleaned_and_comes_out_no_longer(text: str, steps: set[Step]) -> None:
    cleaned = clean(text, steps)

    assert isinstance(cleaned, str)
    # "> " stands before each line of a quoted block.
    assert len(cleaned) <= len(text) + 2 * (1 + text.count("<"))
    assert clean(text, steps) == cleaned


@given(st.text(alphabet=st.characters(exclude_characters="<>")))
def test_a_text_without_a_tag_is_no_html(text: str) -> None:
    assert clean(text, ["html"]) == text
