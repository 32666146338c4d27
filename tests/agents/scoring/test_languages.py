"""A model abstains where a text is in a language that its folder does not name; English of every kind is read."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from ticketgate.agents.scoring import ScorerError, default_model_path, open_scorer
from ticketgate.agents.scoring.folder import load_folder
from ticketgate.agents.scoring.languages import Languages, words
from ticketgate.agents.scoring.onnx import OnnxScorer
from ticketgate.agents.scoring.tokens import Tokenization
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import NoulQuestion
from ticketgate.codecs.values.strict import JsonValue

from tests.support.shared_files import shared

Build = Callable[..., Path]

FOREIGN = {
    "German": ["Wo ist mein Paket?", "Ich kann mich nicht anmelden", "Meine Karte wurde zweimal belastet."],
    "French": ["Où est mon colis ?", "Je veux un remboursement", "L'application plante à chaque fois"],
    "Spanish": [
        "Hola, quiero cancelar mi pedido",
        "Me cobraron dos veces",
        "No puedo iniciar sesión en mi cuenta",
    ],
    "Italian": ["Dov'è il mio pacco?", "Vorrei un rimborso", "Non riesco ad accedere al mio account"],
    "Portuguese": ["Onde está a minha encomenda?", "Quero cancelar a minha assinatura"],
    "Dutch": ["Mijn pakket is niet aangekomen", "Waar kan ik mijn wachtwoord wijzigen?"],
    "Polish": ["Gdzie jest moja paczka?", "Nie mogę się zalogować"],
    "Swedish": ["Var är mitt paket?", "Jag vill ha pengarna tillbaka"],
    "Turkish": ["Paramı geri istiyorum", "Hesabıma giriş yapamıyorum"],  # noqa: RUF001  # meant
    "Czech": ["Kde je můj balík?", "Aplikace pořád padá"],
    "Finnish": ["Missä pakettini on?", "Haluan rahani takaisin"],
    "Hungarian": ["Hol van a csomagom?", "Kérem vissza a pénzemet"],
    "Romanian": ["Unde este coletul meu?", "Vreau banii înapoi"],
    "Indonesian": ["Saya ingin uang saya kembali"],
    "Vietnamese": ["Gói hàng của tôi ở đâu?"],
    "Danish": ["Jeg vil gerne have mine penge tilbage"],
    "Russian": ["Где моя посылка? Я заплатил дважды.", "Не могу войти"],  # noqa: RUF001  # meant
    "Ukrainian": ["Де моя посилка?"],
    "Greek": ["Πού είναι το δέμα μου;"],
    "Arabic": ["أين طردي؟"],
    "Hebrew": ["איפה החבילה שלי?"],
    "Japanese": ["荷物はどこですか"],
    "Chinese": ["请问我的包裹在哪里"],
    "Korean": ["제 소포는 어디에 있나요?"],
    "Thai": ["ลูกค้าต้องการเงินคืน"],
    "Hindi": ["मेरा पार्सल कहाँ है?"],
}

ENGLISH: list[JsonValue] = [
    "",
    "ok",
    "hello",
    "refund",
    "card not working",
    "REFUND NOW",
    "thx it works",
    "pls cancel my sub asap",
    "wheres my parcel",
    "i cant log in help",
    "error 0x80070057 in module kernel32.dll",
    "Order 7731-B: https://shop.example/o/7731?lang=de",
    "jana.novakova@priklad.example wants an invoice",
    "add 45 to 87 plus 54 plus 43 plus 22",
    "My name is Xiomara Etxeberria and my café order is late.",
    "Thanks, it works now 👍",
    "👍",
    "4711",
    {"subject": "Login", "body": "The code never arrives.", "tries": 3},
    {"betreff": "Login", "nachricht": "The code never arrives on my phone.", "versuche": 3},
    ["first line", "second line"],
]


@pytest.fixture(scope="module")
def english() -> Languages:
    return Languages(["en"])


@pytest.mark.parametrize("text", [text for texts in FOREIGN.values() for text in texts])
def test_a_sentence_in_another_language_is_refused_with_what_the_model_reads(
    english: Languages, text: str
) -> None:
    reason = english.refusal(text)

    assert reason is not None
    assert reason.startswith('the text reads as language "')
    assert reason.endswith("this model reads en")
    assert text not in reason


@pytest.mark.parametrize("state", ENGLISH, ids=str)
def test_english_is_read_however_short_it_is(english: Languages, state: JsonValue) -> None:
    assert english.refusal(state) is None


def test_keys_are_not_the_writers_words(english: Languages) -> None:
    keys: JsonValue = {"order": {"customer message": "Wo ist mein Paket? Ich warte seit zwei Wochen."}}

    assert words(keys) == "Wo ist mein Paket? Ich warte seit zwei Wochen."
    assert english.refusal(keys) is not None


def test_a_language_that_is_named_is_read() -> None:
    both = Languages(["en", "de"])

    assert [both.refusal(text) for text in FOREIGN["German"]] == [None] * 3
    assert all(both.refusal(text) for text in FOREIGN["French"])


def test_what_is_read_of_a_huge_state_is_bounded(english: Languages) -> None:
    assert len(words([*["word " * 1000] * 1000])) <= 2001
    assert english.refusal("Where is my parcel? " * 100_000) is None


def test_of_public_english_tickets_at_most_one_in_a_hundred_is_refused(english: Languages) -> None:
    sets = {
        "banking77": [row["text"] for row in _rows(shared("data", "banking77_test.csv"))],
        "bitext": [row["utterance"] for row in _rows(shared("data", "bitext_support_4k.csv"))],
        "clinc": [text for text, _ in json.loads(shared("data", "clinc_data_full.json").read_text())["test"]],
    }

    shares = {
        name: sum(english.refusal(text) is not None for text in texts[::3]) / len(texts[::3])
        for name, texts in sets.items()
    }

    assert max(shares.values()) <= 0.01, shares


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def named(build: Build, *codes: str) -> Path:
    return build(lambda manifest: manifest.update(languages=list(codes)))


def test_a_folder_that_names_its_languages_answers_and_says_that_it_abstains(build: Build) -> None:
    scorer = OnnxScorer.open(named(build, "en"))
    tickets = [Ticket(id="A", state="Wo ist mein Paket? Ich warte."), Ticket(id="B", state="card late")]

    foreign, english = scorer.score(tickets, {"q": NoulQuestion("card")})

    assert foreign.abstention is not None
    assert foreign.answers.keys() == {"q"}
    assert (
        english.abstention == "most of the text is outside the model's vocabulary" or not english.abstention
    )


def test_a_folder_that_does_not_say_what_it_reads_stands_by_every_answer(build: Build) -> None:
    scorer = OnnxScorer.open(build())

    (scores,) = scorer.score(
        [Ticket(id="A", state="Wo ist mein Paket? Ich warte.")], {"q": NoulQuestion("card")}
    )

    assert scores.abstention is None


def test_a_folders_identity_is_as_it_was_before_languages_could_be_named(build: Build) -> None:
    folder = build()
    before = load_folder(folder).model
    document = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(document | {"languages": ["en"]}))

    assert load_folder(folder).model.hash != before.hash


def test_a_language_that_cannot_be_told_is_refused_when_the_folder_opens(build: Build) -> None:
    with pytest.raises(ScorerError, match="languages: no language that can be told: english, xx"):
        open_scorer("onnx", model=named(build, "en", "xx", "english"))


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("The app crashes every time I open it.", False),
        ("Thanks, it works now 👍", False),
        ("order 88123 ref 4711-B", False),
        ("Где моя посылка? Я заплатил дважды.", True),
        ("Πού είναι το δέμα μου;", True),
        ("أين طردي؟", True),
        ("ลูกค้าต้องการเงินคืน", True),
        ("QUJD" * 60, True),
        ("", False),
    ],
)
def test_a_text_that_is_mostly_outside_the_vocabulary_is_told_in_every_script(
    text: str, outside: bool
) -> None:
    tokens = Tokenization(load_folder(default_model_path()))

    assert tokens.is_outside(text) is outside
