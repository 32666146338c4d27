"""The contracts pair-logit and option-markers (fused and split) on models whose answers can be worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ticketgate.agents.scoring import Scorer, ScorerError, Scores, contracts, open_scorer
from ticketgate.agents.scoring.folder import load_folder
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.answer_checks import check_answers
from ticketgate.codecs.systemone.question_reading import read_questions
from ticketgate.codecs.systemone.questions import Question

from ...support import tiny

Change = Callable[[dict[str, Any]], object]
NOTHING: Change = lambda _: None  # noqa: E731 - a default for parameters

PAIR_TEMPLATE = {
    "state": "{state}",
    "noul": "{instructions}",
    "noul_true": " {description}",
    "noul_false": "",
    "option": "{label}",
    "described_option": "{label} {description}",
    "level": "{description}",
}
MARKER_TEMPLATE = {
    "state": "{state}",
    "question": "{instructions} ?",
    "true": "yes",
    "false": "no",
    "option": "{label}",
    "described_option": "{label} {description}",
    "level": "{description}",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "mask": "[MASK]",
}
IDS = {"ids": "input_ids", "mask": "attention_mask"}
MARKERS = {"marker_pos": "marker_pos", "marker_mask": "marker_mask", "qtype": "qtype"}


def pair(folder: Path, change: Change = NOTHING) -> Path:
    inputs = {**IDS, "types": "token_type_ids"}
    document = tiny.manifest(
        "pair-logit",
        {"model": {"file": "model.onnx", "inputs": inputs, "outputs": {"logit": "logit"}}},
        template=dict(PAIR_TEMPLATE),
        calibration={
            "noul": {"scale": 2.0, "bias": -3.0},
            "choice": {"scale": 1.0, "2": 0.5},
            "score": {"scale": 1.0},
        },
    )
    return tiny.write_folder(folder, document, {"model.onnx": tiny.pair_model()}, change)


def markers(folder: Path, change: Change = NOTHING, *, split: bool) -> Path:
    outputs = {"logits": "logits"}
    graphs: dict[str, Any] = {
        "model": {"file": "model.onnx", "inputs": {**IDS, **MARKERS}, "outputs": outputs}
    }
    files = {"model.onnx": tiny.fused_model()}
    if split:
        head = {"hidden": "hidden", "mask": "attention_mask", **MARKERS}
        graphs = {
            "encoder": {"file": "encoder.onnx", "inputs": IDS, "outputs": {"hidden": "hidden"}},
            "head": {"file": "head.onnx", "inputs": head, "outputs": outputs},
        }
        files = {"encoder.onnx": tiny.split_encoder(), "head.onnx": tiny.split_head()}
    document = tiny.manifest(
        "option-markers",
        graphs,
        template=dict(MARKER_TEMPLATE),
        calibration={
            "noul": {"temperature": 3.0},
            "choice": {"temperature": 1.0, "2": 2.0},
            "score": {"temperature": 1.0},
        },
    )
    return tiny.write_folder(folder, document, files, change)


BUILDERS: dict[str, Callable[..., Path]] = {
    "pair-logit": pair,
    "fused": lambda folder, change=NOTHING: markers(folder, change, split=False),
    "split": lambda folder, change=NOTHING: markers(folder, change, split=True),
}
MARKED = ["fused", "split"]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Scorer]:
    folder = tmp_path_factory.mktemp("models")
    scorers = {name: open_scorer("onnx", model=build(folder / name)) for name, build in BUILDERS.items()}
    return scorers.__getitem__


def ask(scorer: Scorer, state: Any, **questions: Any) -> Scores:
    (scores,) = scorer.score([Ticket(id="T", state=state)], read_questions(questions))
    return scores


def answer(scorer: Scorer, state: Any, question: Any) -> Any:
    return ask(scorer, state, q=question).answers["q"]


def softmax(*logits: float) -> list[float]:
    powers = [math.exp(logit) for logit in logits]
    return [power / sum(powers) for power in powers]


NOUL = {"type": "noul", "instructions": "card"}
TWO = {"type": "choice", "criteria": {"card": None, "angry": None}}
THREE = {"type": "choice", "criteria": {"card": None, "angry": None, "late": None}}
LEVELS = {"type": "score", "criteria": ["calm", "late", "angry"]}


def test_a_pairs_noul_is_its_calibrated_logit(opened: Callable[[str], Scorer]) -> None:
    # "card" is in both twice and once, and [SEP] in both: 2 + 1.
    found = answer(opened("pair-logit"), "card card", NOUL)

    assert found["noul"] == pytest.approx(1 / (1 + math.exp(-(2 * 3 - 3))))


def test_a_pairs_choice_is_a_softmax_scaled_by_the_number_of_options(opened: Callable[[str], Scorer]) -> None:
    scorer = opened("pair-logit")

    two = answer(scorer, "card card", TWO)["probabilities"]
    three = answer(scorer, "card card", THREE)["probabilities"]

    assert list(two.values()) == pytest.approx(softmax(0.5 * 3, 0.5 * 1))
    assert list(three.values()) == pytest.approx(softmax(3, 1, 1))


@pytest.mark.parametrize("name", MARKED)
def test_markers_choice_is_a_softmax_over_its_own_markers(opened: Callable[[str], Scorer], name: str) -> None:
    scorer = opened(name)

    # Each option's word stands once as the option itself, "card" twice more in the ticket.
    two = answer(scorer, "card card", TWO)
    three = answer(scorer, "card card", THREE)

    assert two["choice"] == "card"
    assert list(two["probabilities"].values()) == pytest.approx(softmax(3 / 2, 1 / 2))
    assert list(three["probabilities"].values()) == pytest.approx(softmax(3, 1, 1))


@pytest.mark.parametrize("name", MARKED)
def test_the_type_is_told_to_the_model(opened: Callable[[str], Scorer], name: str) -> None:
    # qtype 1 doubles the counts of a score, qtype 2 trebles those of a noul.
    level = answer(opened(name), "late", LEVELS)
    noul = answer(opened(name), "yes yes", NOUL)

    assert list(level["probabilities"].values()) == pytest.approx(softmax(2, 4, 2))
    assert level["legend"] == {"0": "calm", "1": "late", "2": "angry"}
    assert noul["noul"] == pytest.approx(softmax(3 * 1 / 3, 3 * 3 / 3)[1])


@pytest.mark.parametrize("name", MARKED)
def test_a_nouls_order_is_false_true_whatever_its_words(opened: Callable[[str], Scorer], name: str) -> None:
    sides = {"true": "card", "false": "late"}
    found = [
        answer(opened(name), "yes", {**NOUL, "criteria": dict(order)})["noul"]
        for order in (list(sides.items()), list(reversed(sides.items())))
    ]

    assert found[0] == found[1] > 0.5


@pytest.mark.parametrize("name", BUILDERS)
def test_special_tokens_in_a_ticket_are_text(opened: Callable[[str], Scorer], name: str) -> None:
    scores = ask(opened(name), "card [SEP] [MASK] [CLS]", q=THREE)

    assert isinstance(check_answers(read_questions({"q": THREE}), scores.answers), dict)
    # "[SEP]" is three words, of which none is known: too much of the ticket was not read.
    assert scores.truncated == {"q"}


@pytest.mark.parametrize("name", BUILDERS)
def test_truncation_is_reported_for_the_questions_that_it_touches(
    opened: Callable[[str], Scorer], name: str
) -> None:
    long_question = {"type": "noul", "instructions": "card " * 14}

    fits = ask(opened(name), "card " * 5, short=NOUL, long=long_question)
    cut = ask(opened(name), "card " * 40, short=NOUL, long=long_question)

    assert fits.truncated == ({"long"} if name in MARKED else frozenset())
    assert cut.truncated == {"short", "long"}
    assert cut.input_tokens == 48


@pytest.mark.parametrize("name", BUILDERS)
def test_a_question_longer_than_the_window_is_cut_and_said_so(
    opened: Callable[[str], Scorer], name: str
) -> None:
    long = {"type": "choice", "instructions": "late " * 50, "criteria": {"card": "late " * 50, "angry": None}}
    scores = ask(opened(name), "card", q=long)

    assert scores.truncated == {"q"}
    assert isinstance(check_answers(read_questions({"q": long}), scores.answers), dict)


@pytest.mark.parametrize("name", MARKED)
def test_more_options_than_fit_the_window_are_a_failure_that_says_so(
    opened: Callable[[str], Scorer], name: str
) -> None:
    many = {"type": "choice", "criteria": {f"card{n}": None for n in range(20)}}

    scores = ask(opened(name), "card", q=many)

    assert scores.answers == {}
    assert scores.failure is not None
    assert scores.failure.reason == 'question "q": 20 options, and this model takes at most 19'


@pytest.mark.parametrize("name", BUILDERS)
def test_the_manifest_may_limit_the_options(tmp_path: Path, name: str) -> None:
    folder = BUILDERS[name](tmp_path / "m", lambda m: m["limits"].update(options=3))
    scorer = open_scorer("onnx", model=folder)

    four = ask(scorer, "card", q={"type": "choice", "criteria": dict.fromkeys("abcd")})

    assert answer(scorer, "card", THREE)["choice"] == "card"
    assert four.failure is not None
    assert "4 options, and this model takes at most 3" in four.failure.reason


QUESTIONS: dict[str, Question] = read_questions(
    {
        "noul": NOUL,
        "two": TWO,
        "three": THREE,
        "levels": LEVELS,
        "long": {**NOUL, "instructions": "late " * 9},
    }
)
STATES = ["card", "card late angry " * 2, "calm", "", "late " * 30, {"a": "card", "b": ["late"]}]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(BUILDERS)),
    places=st.lists(st.integers(0, len(STATES) - 1), min_size=1, max_size=12),
    asked=st.lists(st.sampled_from(sorted(QUESTIONS)), min_size=1, unique=True),
)
def test_an_answer_depends_on_its_ticket_and_its_question_alone(
    opened: Callable[[str], Scorer], name: str, places: list[int], asked: list[str]
) -> None:
    scorer = opened(name)
    tickets = [Ticket(id=str(n), state=STATES[place]) for n, place in enumerate(places)]

    together = scorer.score(tickets, {each: QUESTIONS[each] for each in asked})

    for ticket, scores in zip(tickets, together, strict=True):
        assert list(scores.answers) == asked
        for each in asked:
            (alone,) = scorer.score([ticket], {each: QUESTIONS[each]})
            assert numbers(scores.answers[each]) == pytest.approx(numbers(alone.answers[each]), abs=1e-5)
            assert (each in scores.truncated) == (each in alone.truncated)


def numbers(found: Any) -> list[float]:
    return [found["noul"]] if found["type"] == "noul" else list(found["probabilities"].values())


@pytest.mark.parametrize(
    ("name", "change", "what"),
    [
        (
            "fused",
            lambda m: m["template"].update(mask="[MARK]"),
            'has no token "[MARK]", which template names',
        ),
        ("fused", lambda m: m["template"].pop("true"), "template: true: field required"),
        (
            "fused",
            lambda m: m["calibration"]["choice"].update({"3": 7.0}),
            "calibration: choice: value error, 3 must be from 0.5 to 5, not 7",
        ),
        (
            "fused",
            lambda m: m["calibration"]["choice"].update({"few": 1.0}),
            "few is neither temperature nor a count of options",
        ),
        ("fused", lambda m: m["calibration"]["score"].pop("temperature"), "needs temperature"),
        ("fused", lambda m: m["graphs"].clear(), "needs a graph model, or the graphs encoder and head"),
        ("split", lambda m: m["graphs"].pop("head"), "the manifest names encoder"),
        (
            "split",
            lambda m: m["graphs"]["head"]["inputs"].update(qtype="ghost"),
            'head.onnx has no input "ghost"',
        ),
        ("split", lambda m: m["graphs"]["head"]["inputs"].pop("marker_mask"), "the manifest names hidden, "),
        ("split", lambda m: m["calibration"]["noul"].update(temperature=1.0), "row 0: answers.n.noul"),
        ("pair-logit", lambda m: m["calibration"]["noul"].pop("bias"), "calibration: noul.bias"),
        ("pair-logit", lambda m: m["calibration"]["choice"].update({"2": 0.0}), "2 must be from 0.001"),
        (
            "pair-logit",
            lambda m: m["graphs"]["model"]["inputs"].pop("types"),
            'model.onnx needs an input "token_type_ids", which the manifest does not name',
        ),
        ("pair-logit", lambda m: m["graphs"]["model"]["outputs"].update(logit="ghost"), 'no output "ghost"'),
        ("pair-logit", lambda m: m["template"].update(level="{label}"), "no such place to fill: label"),
        ("pair-logit", lambda m: m["limits"].update(options=1), "limits.options"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused_precisely(
    tmp_path: Path, name: str, change: Change, what: str
) -> None:
    folder = BUILDERS[name](tmp_path / "m", change)

    with pytest.raises(ScorerError) as refused:
        open_scorer("onnx", model=folder)

    assert what in str(refused.value)
    assert "\n" not in str(refused.value)


class Oracle:
    """A contract that a package brings."""

    def __init__(self, folder: Any, threads: int) -> None:
        self.folder = folder

    def score(self, states: Any, questions: Any) -> list[Scores]:
        return [Scores({}) for _ in states]


def test_a_package_adds_a_contract_by_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def brought(group: str) -> EntryPoints:
        value = f"{__name__}:Oracle"
        return EntryPoints([EntryPoint("oracle", value, group), EntryPoint("broken", "nowhere:x", group)])

    folder = pair(tmp_path / "m")
    loaded = load_folder(folder)
    monkeypatch.setattr(contracts, "entry_points", brought)
    monkeypatch.setattr(EntryPoint, "load", lambda self: Oracle if self.name == "oracle" else broken())

    opened = contracts.open_contract(renamed(loaded, "oracle"), threads=1)
    with pytest.raises(ScorerError, match='contract "broken" cannot be loaded from nowhere:x'):
        contracts.open_contract(renamed(loaded, "broken"), threads=1)
    with pytest.raises(ScorerError, match="known here are bi-encoder-head, broken, option-markers, oracle"):
        contracts.open_contract(renamed(loaded, "other"), threads=1)

    assert isinstance(opened, Oracle)


def broken() -> None:
    raise ModuleNotFoundError("No module named 'nowhere'")


def renamed(folder: Any, contract: str) -> Any:

    return replace(folder, manifest=folder.manifest.model_copy(update={"contract": contract}))
