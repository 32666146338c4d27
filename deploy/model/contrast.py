"""Tickets that differ by one turn of phrase, with what each makes true: contrast.toml put together by chance.

A turn is a negation, a tense, a condition, who did it, how often, how urgent. Rows come in pairs or more that share
all other words, so that the turn alone can tell them apart. Their labels follow from the turn.
"""

import random
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from triage import Row, parts, wording

HERE = Path(__file__).parent

# What was done or not: (sentence, did it happen). None: it cannot be said.
EVENT_TURNS = (
    ("{S} has {done}.", 1),
    ("{S} {past} this morning.", 1),
    ("{S} has {done}, I checked.", 1),
    ("at last {S} has {done}", 1),
    ("I can confirm that {S} {past}.", 1),
    ("I feared the worst, but {S} {past} after all.", 1),
    ("Forget my last mail, {S} has {done} now.", 1),
    ("it took a while but {S} {past}", 1),
    ("{S} has not {done}.", 0),
    ("{S} hasn't {done} yet.", 0),
    ("{S} never {past}.", 0),
    ("{S} did not {base}.", 0),
    ("{S} didn't {base}, again.", 0),
    ("{S} still won't {base}.", 0),
    ("{S} refuses to {base}.", 0),
    ("{S} was meant to {base} on Monday and it is Thursday.", 0),
    ("You said that {S} has {done}, which is not so.", 0),
    ("your page claims {S} {past} but I see nothing of it", 0),
    ("{S} has yet to {base}.", 0),
    ("In what way can it be that {S} has still not {done}?", 0),
    ("We are waiting for {S} to {base}.", 0),
    ("{S} will {base} next week, I am told.", 0),
    ("Should {S} {base}, I will tell you.", 0),
    ("I have no idea why {S} does not {base}.", 0),
    ("without any reason {S} failed to {base}", 0),
)

WISH_TURNS = (
    ("I want to {base}.", 1),
    ("I'd like to {base}, please.", 1),
    ("please let me {base}", 1),
    ("I have decided to {base}.", 1),
    ("We have thought it over and wish to {base}.", 1),
    ("I insist: I want to {base}.", 1),
    ("Nothing will stop me, I am going to {base}.", 1),
    ("I didn't want to {base} at first, but now I do.", 1),
    ("There is no other way left than to {base}.", 1),
    ("I can't wait to {base}.", 1),
    ("I do not want to {base}.", 0),
    ("I don't wish to {base}.", 0),
    ("I never asked to {base}.", 0),
    ("there's no need for me to {base}", 0),
    ("I have decided not to {base}.", 0),
    ("We have thought it over and won't {base}.", 0),
    ("I wanted to {base} but have changed my mind.", 0),
    ("By no means do I intend to {base}.", 0),
    ("Who told you that I would {base}? I would not.", 0),
    ("My neighbour wants to {base}, I don't.", 0),
    ("I'd rather not {base}.", 0),
    ("Had it been worse I would have wanted to {base}, but it is fine as it is.", 0),
    ("I am far from wanting to {base}.", 0),
    ("Only if you raise the price again will I {base}; for now all stays as it is.", 0),
    ("I was asked whether I want to {base}: no.", 0),
)

DEED_TURNS = (
    ("I {past}.", 1, 0),
    ("it was I who {past}", 1, 0),
    ("My own fault: I {past}.", 1, 0),
    ("To be fair, I {past}, not you.", 1, 0),
    ("You {past}.", 0, 1),
    ("your people {past}", 0, 1),
    ("Your employee {past}.", 0, 1),
    ("One of your team {past}, not me.", 0, 1),
    ("I learnt that you {past}.", 0, 1),
    ("Neither you nor I {past}; a stranger did.", 0, 0),
    ("Nobody {past}.", 0, 0),
    ("My neighbour {past}.", 0, 0),
    ("If I had {past}, I would say so.", 0, None),
)

URGENT = (
    "urgent",
    "pressing",
    "time-critical",
    "an emergency",
    "critical",
    "time-sensitive",
    "a matter of hours",
)
IS_URGENT = ("This is {a}.", "It's really {a}.", "it has become {a}", "Please treat this as {a}.", "For us this is {a}!", "It was not {a} last week but now it is.", "I would not write at this hour if it weren't {a}.", "You may think otherwise, yet it is {a}.", "I can't stress enough that this is {a}.")  # fmt: skip
NOT_URGENT = ("This is not {a}.", "It isn't {a} at all.", "it's by no means {a}", "Nothing about this is {a}.", "I would not call it {a}.", "This is far from being {a}.", "It was {a} last week but no longer is.", "Please don't treat this as {a}.", "hardly {a}, I know", "If it were {a} I would have phoned.", "My boss says it is {a}; it is not.", "You marked it as {a}, which it is not.")  # fmt: skip
HURRY = ("hurry", "rush", "time pressure", "urgency", "haste", "deadline")
IS_HURRY = ("There is great {n} here.", "We are under {n}.", "{n}, please!", "I'm writing because of the {n}.", "the {n} is real")  # fmt: skip
NOT_HURRY = ("There is no {n}.", "No {n}.", "no {n} whatsoever", "There's really no {n} on our side.", "I see no {n} here.", "Without any {n}.", "Don't feel any {n}.", "the {n} is over")  # fmt: skip
WHEN = (
    "Friday",
    "next week",
    "the end of the month",
    "you are back",
    "after the holidays",
    "tomorrow",
    "the spring",
)
CANNOT_WAIT = ("It can't wait until {w}.", "This cannot wait for {w}.", "{w} will be too late.", "I need it well before {w}.", "we won't last until {w}", "Not {w}, not later: now.", "Do it at once and not on {w}.")  # fmt: skip
CAN_WAIT = ("It can wait until {w}.", "This may well wait for {w}.", "{w} will be early enough.", "I don't need it before {w}.", "we will manage until {w}", "Not now; {w} is fine.", "Do it on {w} and not at once.", "No need to answer before {w}.")  # fmt: skip
HARMLESS = ("It does not keep me from working.", "I found a way around it for now.", "Nobody is held up by it.", "It's a small thing.", "I only mention it.", "We can live with it.", "Nothing depends on it.", "You needn't drop anything for this.")  # fmt: skip
HARMFUL = ("It keeps all of us from working.", "I found no way around it.", "Everybody is held up by it.", "We are losing customers by the minute.", "We can't live with it for another hour.", "Everything depends on it.", "You have to drop everything for this.", "extremely urgent, we lose sales every hour")  # fmt: skip

GOOD = ("happy", "satisfied", "pleased", "content", "impressed", "delighted", "thrilled")
BAD = ("unhappy", "disappointed", "annoyed", "angry", "upset", "furious", "frustrated")
FEELS = (
    "I am {a}.",
    "I'm very {a} with you.",
    "we are really {a}",
    "It left me {a}.",
    "I was calm at first, now I am {a}.",
)
FEELS_NOT = ("I am not {a}.", "I'm not {a} with you at all.", "we are anything but {a}", "It did not leave me {a}.", "I'd be lying if I said I was {a}.", "I was {a} once, no longer.", "Nobody here is {a}.")  # fmt: skip
PLEASED = ("I can't complain.", "There is nothing to complain about.", "Couldn't be better.", "No complaints from me.", "not bad at all, well done", "You did not let me down.", "I have never been treated better.")  # fmt: skip
CROSS = ("I can only complain.", "There is a lot to complain about.", "Couldn't be worse.", "So many complaints from me.", "not good at all, badly done", "You did let me down.", "I have never been treated worse.")  # fmt: skip


def contrast_rows(count: int, chance: random.Random) -> list[Row]:
    """About `count` rows of each of six kinds."""
    given = tomllib.loads((HERE / "contrast.toml").read_text())
    asked = parts()["questions"]
    bodies = given["bodies"]["texts"]
    made: list[Row] = []
    while len(made) < count:
        made += _events(chance.choice(given["events"]), bodies, chance)
        made += _wishes(chance.choice(given["wishes"]), bodies, chance)
        made += _deeds(chance.choice(given["deeds"]), bodies, chance)
        made += _pair(chance.choice(given["pairs"]), bodies, chance)
        made += _urgency(asked, bodies, chance)
        made += _mood(asked, bodies, chance)
    return made


def _events(event: dict, bodies: Sequence[str], chance: random.Random) -> Iterator[Row]:
    subject = chance.choice(event["subject"])
    forms = {
        "S": subject,
        "done": event["done"],
        "past": event.get("past", event["done"]),
        "base": event["base"],
    }
    body = _around(bodies, chance)
    asked, missing = chance.choice(event["asked"]), chance.choice(event["missing"])
    for turn, happened in _turns(EVENT_TURNS, chance):
        text = body(turn.format(**forms))
        yield Row(text, asked, float(happened), f"contrast:{event['base']}")
        if "next week" not in turn and "Should" not in turn:
            yield Row(text, missing, float(not happened), f"contrast:{event['base']}")


def _wishes(wish: dict, bodies: Sequence[str], chance: random.Random) -> Iterator[Row]:
    base, question = chance.choice(wish["base"]), chance.choice(wish["asked"])
    body = _around(bodies, chance)
    for turn, wanted in _turns(WISH_TURNS, chance):
        yield Row(body(turn.format(base=base)), question, float(wanted), f"contrast:{wish['base'][0]}")
        if chance.random() < 0.3:
            plain = f"Does the customer want to {base}?".replace(" my ", " their ")
            yield Row(body(turn.format(base=base)), plain, float(wanted), f"contrast:{wish['base'][0]}")


def _deeds(deed: dict, bodies: Sequence[str], chance: random.Random) -> Iterator[Row]:
    past = chance.choice(deed["past"])
    body = _around(bodies, chance)
    for turn, customer, company in _turns(DEED_TURNS, chance):
        text = body(turn.format(past=past))
        yield Row(text, chance.choice(deed["customer"]), float(customer), f"contrast:{deed['past'][0]}")
        if company is not None:
            yield Row(text, chance.choice(deed["company"]), float(company), f"contrast:{deed['past'][0]}")


def _pair(pair: dict, bodies: Sequence[str], chance: random.Random) -> Iterator[Row]:
    body = _around(bodies, chance)
    place = chance.randrange(len(pair["true"]))
    question = chance.choice(pair["asked"])
    for label, texts in ((1.0, pair["true"]), (0.0, pair["false"])):
        yield Row(body(texts[place]), question, label, f"contrast:{pair['true'][0]}")


def _urgency(asked: dict, bodies: Sequence[str], chance: random.Random) -> Iterator[Row]:
    body = _around([*bodies, *_faults()], chance)
    word = {"a": chance.choice(URGENT), "n": chance.choice(HURRY), "w": chance.choice(WHEN)}
    yes, no = chance.choice(
        (
            (IS_URGENT, NOT_URGENT),
            (IS_URGENT, NOT_URGENT),
            (IS_HURRY, NOT_HURRY),
            (CANNOT_WAIT, CAN_WAIT),
            (HARMFUL, HARMLESS),
        )
    )
    question = wording(asked["urgent"], chance)
    for label, turns in ((1.0, yes), (0.0, no)):
        for turn in chance.sample(turns, 2):
            yield Row(body(_capital(turn.format(**word))), question, label, "contrast:urgency")


def _mood(asked: dict, bodies: Sequence[str], chance: random.Random) -> Iterator[Row]:
    body = _around(bodies, chance)
    good, bad = chance.choice(GOOD), chance.choice(BAD)
    is_good = [t.format(a=good) for t in FEELS] + [t.format(a=bad) for t in FEELS_NOT[:3]] + list(PLEASED)
    is_bad = [t.format(a=bad) for t in FEELS] + [t.format(a=good) for t in FEELS_NOT] + list(CROSS)
    complaint, praise = wording(asked["complaint"], chance), wording(asked["praise"], chance)
    for cross, texts in ((0.0, is_good), (1.0, is_bad)):
        for text in chance.sample(texts, 2):
            yield Row(body(text), complaint, cross, "contrast:mood")
            if bad not in text or cross:  # not being angry is not yet being glad
                yield Row(body(text), praise, 1 - cross, "contrast:mood")


def _faults() -> list[str]:
    """Bodies of faults and questions, calm by themselves: what is urgent is said by the turn."""
    return [t for body in parts()["bodies"] if not set(body["is"]) & set("uxflg") for t in body["texts"]]


def _turns(turns: Sequence[tuple], chance: random.Random) -> list[tuple]:
    """Two turns that make it true, and two or three that do not."""
    true, false = [t for t in turns if t[1]], [t for t in turns if not t[1]]
    return chance.sample(true, 2) + chance.sample(false, chance.choice((2, 3)))


def _around(bodies: Sequence[str], chance: random.Random):
    """A function that puts a sentence into the same surroundings each time."""
    before = chance.choice(bodies) if chance.random() < 0.6 else ""
    after = chance.choice(bodies) if chance.random() < 0.25 else ""
    lower = chance.random() < 0.2

    def body(sentence: str) -> str:
        text = " ".join(part for part in (before, _capital(sentence), after) if part)
        return text.lower() if lower else text

    return body


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
