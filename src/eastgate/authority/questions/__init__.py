"""Questions: the question itself, its two ends, and the requests that it means."""

from eastgate.authority.questions.callers import callers_of
from eastgate.authority.questions.resolving import Arrival, Resolver, arrivals, without_http
from eastgate.authority.questions.values import message_values, request_values
from eastgate.cluster import ends
from eastgate.cluster.ends import EntryPoint, Values
from eastgate.cluster.question import Question
from eastgate.cluster.question_errors import (
    BAD_ATTRIBUTE,
    BAD_DESTINATION,
    BAD_SOURCE,
    LABELS_UNKNOWN,
    NOT_CONSIDERED,
    NOT_DECLARED,
    NOTHING_BEHIND,
    POLICY_REJECTED,
    QuestionError,
    UnknownLabelsError,
)

__all__ = [
    "BAD_ATTRIBUTE",
    "BAD_DESTINATION",
    "BAD_SOURCE",
    "LABELS_UNKNOWN",
    "NOTHING_BEHIND",
    "NOT_CONSIDERED",
    "NOT_DECLARED",
    "POLICY_REJECTED",
    "Arrival",
    "EntryPoint",
    "Question",
    "QuestionError",
    "Resolver",
    "UnknownLabelsError",
    "Values",
    "arrivals",
    "callers_of",
    "ends",
    "message_values",
    "request_values",
    "without_http",
]
