"""The System One protocol: questions, answers and their checks, JSON Schema to questions, the wire's errors.

README.md beside this file shows each with an example that runs. For who calls a server: `Prediction` reads a response,
`questions_from_json_schema` and `answers_to_json` go from a JSON Schema to questions and back.
Not here: who answers (ticketgate.agents.scoring), the endpoint (streams.process.web).
"""

from ticketgate.codecs.systemone.answers import answer_confidence, certainty, confidence
from ticketgate.codecs.systemone.jsonschema import SchemaError, answers_to_json, questions_from_json_schema
from ticketgate.codecs.systemone.protocol import PATH, Prediction
from ticketgate.codecs.systemone.question_reading import read_questions
from ticketgate.codecs.systemone.questions import (
    ChoiceQuestion,
    NoulQuestion,
    Question,
    QuestionError,
    ScoreQuestion,
)

__all__ = [
    "PATH",
    "ChoiceQuestion",
    "NoulQuestion",
    "Prediction",
    "Question",
    "QuestionError",
    "SchemaError",
    "ScoreQuestion",
    "answer_confidence",
    "answers_to_json",
    "certainty",
    "confidence",
    "questions_from_json_schema",
    "read_questions",
]
