"""Questions: what is asked, the two ends of it, and the requests that it stands for."""

from eastgate.authority.questions import ends
from eastgate.authority.questions.arrivals import Arrival, EntryPoint, Resolver, Values, arrivals, callers_of
from eastgate.authority.questions.codes import (
    BAD_ATTRIBUTE,
    BAD_DESTINATION,
    BAD_SOURCE,
    LABELS_UNKNOWN,
    NOT_CONSIDERED,
    NOT_DECLARED,
    NOTHING_BEHIND,
    POLICY_REJECTED,
    QuestionError,
)
from eastgate.authority.questions.values import message_values, request_values
from eastgate.cluster.question import Question

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
    "Values",
    "arrivals",
    "callers_of",
    "ends",
    "message_values",
    "request_values",
]
