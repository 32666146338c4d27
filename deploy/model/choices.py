"""Options put as statements: "What is this about? a refund" is true of a ticket about a refund, and of no other.

Asked the other way round ("What is it not about? a refund") the same pair has the other label. An option is also put
about itself: by that the contract tells which way round a choice asks (agents/scoring/contracts/bi_encoder_head.py).
"""

import random

from triage import Row

ABOUT = (
    "What is this ticket about?", "What is the customer asking about?", "What is the user asking about?",
    "What does this concern?", "Which topic is it?", "Which is it?", "What is the subject?", "Which category fits?",
    "Choose the topic.", "Label this message.", "Which of these is meant?", "What kind of request is it?",
    "Which label is right?", "Classify the message.", "To which subject does it belong?",
)  # fmt: skip
WANTS = (
    "What does the customer want?", "What does the user want to do?", "What is the customer trying to do?",
    "Which request is it?", "What is the intention?", "What should be done for the customer?", "Which is it?",
)  # fmt: skip
NOT_ABOUT = (
    "What is this ticket not about?", "Which is it not?", "Which of these does it not concern?", "Which topic can be ruled out?",
    "Which label would be wrong?", "What is the customer not asking about?", "Which category does not fit?",
    "Choose the topic that is not meant.", "Which is the least likely?", "What has nothing to do with it?",
)  # fmt: skip
NOT_WANTS = ("What does the customer not want?", "Which request is it not?", "What is not the intention?", "What should not be done?", "Which is it not?")  # fmt: skip
TEAM = (
    "Which team?",
    "Which desk should take it?",
    "Where should it go?",
    "Who should handle this?",
    "Route it to the right queue.",
)
NOT_TEAM = ("Which team need not see it?", "Which desk is the wrong one?", "Where should it not go?")
TEAMS = {
    "billing": ("billing", "billing: payments and invoices", "finance", "accounts", "payments"),
    "technical": ("technical support", "technical: bugs and errors", "engineering", "IT", "tech"),
    "delivery": ("logistics", "shipping", "deliveries", "logistics: parcels"),
    "sales": ("sales", "sales: offers and prices", "new business"),
    "fraud": ("security", "fraud desk", "security: misuse and theft"),
    "legal": ("legal", "the lawyers", "legal department"),
    "feedback": ("product", "product ideas", "suggestions"),
}


def choice_rows(
    corpus, near: dict[str, dict[str, list[str]]], chance: random.Random, *, share: float
) -> list[Row]:
    """Public tickets (`share` of them) with their own option and three others, some of them `near`."""
    made = []
    for name, texts in (("banking77", corpus.banking), ("clinc", corpus.clinc)):
        phrases = corpus.phrases[name]
        for text, intent in texts:
            if chance.random() > share:
                continue
            others = {*chance.sample(near[name][intent], 1), *chance.sample(sorted(phrases), 2)} - {intent}
            made += _asked(text, intent, sorted(others), phrases, name, chance)
        for intent in phrases:
            made += _asked(
                _topic(intent),
                intent,
                chance.sample(sorted(set(phrases) - {intent}), 1),
                phrases,
                name,
                chance,
            )
            made += _asked(
                phrases[intent],
                intent,
                chance.sample(sorted(set(phrases) - {intent}), 1),
                phrases,
                name,
                chance,
            )
    return made


def team_rows(tickets, chance: random.Random) -> list[Row]:
    """Tickets of our own, with the teams that are theirs and one that is not."""
    made = []
    for text, truth, body in tickets:
        for name in [n for n in TEAMS if truth.get(n) == 1.0] + chance.sample(sorted(TEAMS), 2):
            if truth.get(name) in (0.0, 1.0):
                option = chance.choice(TEAMS[name])
                turned = chance.random() < 0.2
                asked = chance.choice(NOT_TEAM if turned else TEAM)
                label = abs(truth[name] - turned)
                made.append(Row(text, f"{asked} {option}", label, f"triage:{body}", 0.7))
    for options in TEAMS.values():
        for option in options:
            made += [Row(option, f"{asked} {option}", 1.0, "choice:team") for asked in TEAM]
            made += [Row(option, f"{asked} {option}", 0.0, "choice:team") for asked in NOT_TEAM]
    return made


def _asked(
    text: str, own: str, others: list[str], phrases: dict[str, str], name: str, chance: random.Random
) -> list[Row]:
    wants = chance.random() < 0.4
    turned = chance.random() < 0.25
    asked = chance.choice((NOT_WANTS if turned else WANTS) if wants else (NOT_ABOUT if turned else ABOUT))
    return [
        Row(
            text,
            f"{asked} {phrases[intent] if wants else _topic(intent)}",
            abs(float(intent == own) - turned),
            f"{name}:{intent}",
            0.7,
        )
        for intent in (own, *others)
    ]


def _topic(intent: str) -> str:
    return intent.replace("_", " ").rstrip("?")
