"""Attributes that follow from a question. They are derived only if a layer looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from eastgate.cluster.question import Question
from eastgate.cluster.question_errors import BAD_ATTRIBUTE, QuestionError
from eastgate.ir import Known
from eastgate.ir.addresses import parse_address
from eastgate.ir.attributes import APPLICATION, FORWARDED_ADDRESS, TRANSPORT, UNKNOWN, Attribute, Unknown

TRANSPORTS = ("TCP", "UDP", "SCTP")


def address_of(text: str) -> str:
    """Return an address in its canonical spelling. Raises QuestionError for any other text."""
    try:
        return str(parse_address(text))
    except ValueError:
        raise QuestionError(BAD_ATTRIBUTE, f"`{text}` is not an IP address") from None


def transport_of(question: Question) -> str:
    """Return the transport protocol of a question. Raises QuestionError for an unknown protocol."""
    transport = (question.protocol or "tcp").upper()
    if transport not in TRANSPORTS:
        raise QuestionError(
            BAD_ATTRIBUTE, f"`{question.protocol}` is not a transport protocol", "write tcp, udp or sctp"
        )
    return transport


def _application(question: Question) -> Known:
    return "http" if question.is_http else "bytes"


def _forwarded_address(question: Question) -> Known | Unknown:
    return UNKNOWN if question.forwarded_for is None else address_of(question.forwarded_for)


_DERIVED: Mapping[Attribute, Callable[[Question], Known | Unknown]] = {
    APPLICATION: _application,
    TRANSPORT: transport_of,
    FORWARDED_ADDRESS: _forwarded_address,
}


def derived_among(looked_at: Iterable[Attribute]) -> tuple[Attribute, ...]:
    """Return those of these attributes that are derived here."""
    return tuple(attribute for attribute in looked_at if attribute in _DERIVED)


def derive_values(question: Question, attributes: Iterable[Attribute]) -> Mapping[Attribute, Known]:
    """Return the derived attributes of a question, without those that the question leaves unknown."""
    values: dict[Attribute, Known] = {}
    for attribute in attributes:
        value = _DERIVED[attribute](question)
        if not isinstance(value, Unknown):
            values[attribute] = value
    return values
