"""How bi-encoder-head words a ticket and a question: as texts that are read apart, and compared as vectors."""

from collections.abc import Sequence

from ticketgate.agents.scoring.contracts.answering import StatementTemplate, fill
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question, ScoreQuestion
from ticketgate.codecs.values.strict import JsonValue

_PLACES = {
    "state": {"state"},
    "noul": {"instructions"},
    "noul_true": {"description"},
    "noul_false": {"description"},
    "option": {"label"},
    "described_option": {"label", "description"},
    "level": {"description"},
    "statement": {"instructions", "option"},
}


class Template(StatementTemplate):
    """How state and question become text. `noul_true` and `noul_false` follow `noul` where given."""

    places = _PLACES


class Wording:
    """The template with its places filled; of each value at most `most_chars` are written."""

    def __init__(self, template: Template, *, most_chars: int) -> None:
        self._template, self._most_chars = template, most_chars

    def state(self, state: JsonValue) -> str:
        """A ticket's text."""
        return self._fill(self._template.state, state=state)

    def texts(self, question: Question) -> list[str]:
        """One for a noul, else one an option or level."""
        template = self._template
        match question:
            case NoulQuestion():
                text = ""
                if question.instructions is not None:
                    text += self._fill(template.noul, instructions=question.instructions)
                if question.when_true is not None:
                    text += self._fill(template.noul_true, description=question.when_true)
                if question.when_false is not None:
                    text += self._fill(template.noul_false, description=question.when_false)
                return [text.strip()]
            case ChoiceQuestion():
                return [
                    self._fill(template.option, label=label)
                    if description is None
                    else self._fill(template.described_option, label=label, description=description)
                    for label, description in question.criteria.items()
                ]
            case ScoreQuestion():
                return [self._fill(template.level, description=level) for level in question.criteria]

    def statements(self, question: Question, options: Sequence[str]) -> list[str]:
        """The instructions with each option or level, where the folder has them read; for a noul none."""
        statement = self._template.statement
        if isinstance(question, NoulQuestion) or statement is None or question.instructions is None:
            return []
        return [
            self._fill(statement, instructions=question.instructions, option=option) for option in options
        ]

    def _fill(self, template: str, **values: JsonValue) -> str:
        return fill(template, most=self._most_chars, **values)
