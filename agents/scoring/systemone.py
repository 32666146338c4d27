"""A System One request answered by a scorer: what `ticketgate run` prints and `POST /v1/systemone` returns.

Promise: a request is checked whole before anything is tokenised, and every fault is named with its place; an answer
that does not hold together is never returned. Pure but for the scorer.
`read_request` and `respond` are what `answer_request` does before and after scoring, for a server that scores several
requests together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ticketgate.agents.scoring.models import is_name_of
from ticketgate.agents.scoring.scorer import Scorer, Scores
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.answer_checks import check_answers
from ticketgate.codecs.systemone.answers import Answer, answer_json
from ticketgate.codecs.systemone.question_reading import read_questions
from ticketgate.codecs.systemone.questions import Question, QuestionError
from ticketgate.codecs.values.malformed import MOST_REASONS, first_few, shorten, wrong_kind
from ticketgate.codecs.values.strict import JsonValue

# A request has no id; a scorer that answers by id (`fixed:PATH`) finds it under this one.
REQUEST_ID: Final = "request"

# A fault names its question so far, and of a longer name no more.
MOST_NAME_CHARS: Final = 256
# Who asks for `answer_confidence` under its plain name: the protocol wants what it does not know to begin with x_, so
# nobody gets it unasked.
PLAIN: Final = "x_plain"

_MISSING: Final = ("Field required", "missing")


@dataclass(frozen=True, slots=True)
class Fault:
    """One entry of a 422 body's `detail`: where (`("body", "questions", "route", "criteria")`), what, and its kind."""

    loc: tuple[str | int, ...]
    msg: str
    type: str

    def to_json(self) -> dict[str, JsonValue]:
        """The entry as the protocol writes it."""
        return {"loc": list(self.loc), "msg": self.msg, "type": self.type}

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.loc[1:])) or 'the request'}: {self.msg}"


class RequestError(ValueError):
    """The request cannot be answered; who wrote it must mend it. `faults`: all of them, in the request's order."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults

    def to_json(self) -> dict[str, JsonValue]:
        """The body of a 422."""
        return {"detail": [fault.to_json() for fault in self.faults]}


class AnswersUnusable(Exception):
    """The scorer's answers do not hold together, and none is returned. `reasons`: all of them."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__(f"the model's answers cannot be used: {'; '.join(first_few(reasons))}")
        self.reasons = reasons


class SenderAtFault(AnswersUnusable):
    """The model's server refuses this request; sending it again is of no use. The message is the server's."""

    def __init__(self, reason: str) -> None:
        super().__init__((reason,))


@dataclass(frozen=True, slots=True)
class Request:
    """A request that can be answered. `model` is the name that the caller gives; models.py says who answers it.
    is_plain: whether the answers shall bear `answer_confidence` without x_ before it too (`"x_plain": true`)."""

    state: JsonValue
    questions: Mapping[str, Question]
    model: str | None = None
    is_plain: bool = False

    @property
    def ticket(self) -> Ticket:
        """The state in the form that scorers take."""
        return Ticket(id=REQUEST_ID, state=self.state)


@dataclass(frozen=True, slots=True)
class Response:
    """The answers to a request, checked. `truncated`: questions answered without reading the whole text. `abstention`:
    why the model does not stand by them. `asked_for`: the model's name in the request, if it gave one."""

    model: str
    questions: Mapping[str, Question]
    answers: Mapping[str, Answer]
    input_tokens: int
    truncated: tuple[str, ...] = ()
    abstention: str | None = None
    asked_for: str | None = None
    is_plain: bool = False

    def to_json(self) -> dict[str, JsonValue]:
        """`{model, answers, usage}` as the protocol writes it; `usage.x_truncated` and `usage.x_abstention` stand
        there if there is something to tell, and `x_model_asked_for` where the request gave another name than that of
        the model that answered."""
        usage: dict[str, JsonValue] = {"input_tokens": self.input_tokens, "output_tokens": 0}
        if self.truncated:
            usage["x_truncated"] = list(self.truncated)
        if self.abstention is not None:
            usage["x_abstention"] = self.abstention
        answers: dict[str, JsonValue] = {
            name: answer_json(self.questions[name], answer, is_plain=self.is_plain)
            for name, answer in self.answers.items()
        }
        response: dict[str, JsonValue] = {"model": self.model, "answers": answers, "usage": usage}
        if self.asked_for is not None and not is_name_of(self.asked_for, self.model):
            response["x_model_asked_for"] = self.asked_for
        return response


def answer_request(request: JsonValue, scorer: Scorer) -> dict[str, JsonValue]:
    """The response `{model, answers, usage}` to a decoded request.

    Raises RequestError for a bad request, AnswersUnusable for bad answers, and what the scorer raises.
    """
    return answer(read_request(request), scorer).to_json()


def answer(request: Request, scorer: Scorer) -> Response:
    """The response to a checked request. Raises AnswersUnusable, and what the scorer raises."""
    (scores,) = scorer.score([request.ticket], request.questions)
    return respond(request, scores, model=scorer.model.id)


def read_request(value: JsonValue) -> Request:
    """Check a decoded request; unknown fields are ignored. Raises RequestError."""
    if not isinstance(value, dict):
        raise RequestError(Fault(("body",), f"must be an object, not {wrong_kind(value)}", "dict_type"))
    questions, question_faults = _read_questions(value)
    if faults := [*_model_faults(value), *_plain_faults(value), *_state_faults(value), *question_faults]:
        raise RequestError(*faults)
    model = value.get("model")
    is_plain = value.get(PLAIN) is True
    return Request(value["state"], questions, model if isinstance(model, str) else None, is_plain)


def respond(request: Request, scores: Scores, *, model: str) -> Response:
    """The response to a request whose scores are here. Raises AnswersUnusable, and SenderAtFault, which is one.

    `model`: who scored it, unless the scores name another.
    """
    if scores.failure is not None:
        raise (
            SenderAtFault(scores.failure.reason)
            if scores.failure.is_senders
            else AnswersUnusable((scores.failure.reason,))
        )
    answers = check_answers(request.questions, scores.answers)
    if isinstance(answers, tuple):
        raise AnswersUnusable(answers)
    return Response(
        model=model if scores.model is None else scores.model.id,
        questions=request.questions,
        answers=answers,
        input_tokens=scores.input_tokens,
        truncated=tuple(name for name in request.questions if name in scores.truncated),
        abstention=scores.abstention,
        asked_for=request.model,
        is_plain=request.is_plain,
    )


def _state_faults(fields: Mapping[str, JsonValue]) -> list[Fault]:
    if "state" not in fields:
        return [Fault(("body", "state"), *_MISSING)]
    state = fields["state"]
    if isinstance(state, (str, dict, list)):
        return []
    return [
        Fault(
            ("body", "state"), f"must be text, an object or an array, not {wrong_kind(state)}", "state_type"
        )
    ]


def _model_faults(fields: Mapping[str, JsonValue]) -> list[Fault]:
    model = fields.get("model")
    if model is None or isinstance(model, str):
        return []
    return [Fault(("body", "model"), f"must be text, not {wrong_kind(model)}", "string_type")]


def _plain_faults(fields: Mapping[str, JsonValue]) -> list[Fault]:
    if isinstance(fields.get(PLAIN, False), bool):
        return []
    return [Fault(("body", PLAIN), f"must be true or false, not {wrong_kind(fields[PLAIN])}", "bool_type")]


def _read_questions(fields: Mapping[str, JsonValue]) -> tuple[dict[str, Question], list[Fault]]:
    """The questions that can be asked, and a fault for each that cannot."""
    if "questions" not in fields:
        return {}, [Fault(("body", "questions"), *_MISSING)]
    given = fields["questions"]
    if not isinstance(given, dict):
        what = f"must be an object from id to question, not {wrong_kind(given)}"
        return {}, [Fault(("body", "questions"), what, "dict_type")]
    if not given:
        return {}, [Fault(("body", "questions"), "must hold at least one question", "too_short")]
    questions: dict[str, Question] = {}
    faults: list[Fault] = []
    more = 0
    for question_id, value in given.items():
        try:
            questions |= read_questions({question_id: value}, unknown_fields="ignore")
        except QuestionError as err:
            if len(faults) < MOST_REASONS:
                faults.append(_question_fault(question_id, value, err))
            else:
                more += 1
    if more:
        faults.append(
            Fault(("body", "questions"), f"and {more} more questions cannot be asked", "value_error")
        )
    return questions, faults


def _question_fault(question_id: str, value: JsonValue, err: QuestionError) -> Fault:
    place = ("body", "questions", shorten(question_id, MOST_NAME_CHARS))
    if err.part is None:
        return Fault(place, err.reason, "value_error")
    if isinstance(value, dict) and err.part not in value and err.part != "instructions":
        return Fault((*place, err.part), *_MISSING)
    return Fault((*place, err.part), err.reason, "value_error")
