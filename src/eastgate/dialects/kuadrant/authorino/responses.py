"""Builds the headers and metadata for the service behind, and the response to a denied client, without secrets."""

from __future__ import annotations

import json
from collections.abc import Iterable

from eastgate.dialects.kuadrant.authorino.caching import ask_cached
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found
from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    Denial,
    Identity,
    Json,
    Plain,
    PlainResponse,
    Response,
    Value,
    Wristband,
)
from eastgate.dialects.kuadrant.authorino.values import properties, resolve, stringified
from eastgate.dialects.kuadrant.authorino.wristbands import issue_wristband
from eastgate.ir.fields import steers_proxy

REASON_HEADER = "X-Ext-Auth-Reason"


def build_response(response: Response, evaluation: Evaluation) -> Finding:
    """Build a response. A header that would need more than one line is not made, nor one that steers the proxy."""
    if response.in_header and steers_proxy(response.key):
        return Broken("Its header is for the proxy, and not for a policy to set.")
    finding = ask_cached(
        evaluation.services.cache,
        response.cache,
        (evaluation.scheme, response),
        evaluation.document,
        lambda: _build_content(response, evaluation),
    )
    if isinstance(finding, Found) and isinstance(response.content, Wristband):
        evaluation.secrets.add_issued(stringified(finding.value))
    if isinstance(finding, Found) and response.in_header and not is_header_value(stringified(finding.masked)):
        return Broken("It has characters that no header can have.")
    return finding


def _build_content(response: Response, evaluation: Evaluation) -> Finding:
    match response.content:
        case PlainResponse(value):
            finding = resolve(value, evaluation.document)
        case Json(listed):
            finding = properties(listed, evaluation.document)
        case Wristband() as wristband:
            return issue_wristband(wristband, evaluation)
    if isinstance(finding, Found):
        return Found(finding.value, evaluation.secrets.mask_answer(finding.masked))
    return finding


def is_header_value(text: str) -> bool:
    """Return whether a text can be the value of a header."""
    return all(character == "\t" or (" " <= character != "\x7f") for character in text)


def challenges(identities: Iterable[Identity]) -> list[tuple[str, str]]:
    """Return the challenges for a client that is not recognized: one per identity."""
    return [("WWW-Authenticate", f'{_scheme(each)} realm="{_quoted(each.name)}"') for each in identities]


def _scheme(identity: Identity) -> str:
    match identity.method:
        case X509():
            return "Certificate"  # as Authorino has it
        case Plain(selector, expression):
            return _one_line(expression or selector)
        case _:
            return identity.credentials.key


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def customize_denial(
    denial: Denial, status: int, message: str, headers: list[tuple[str, str]], evaluation: Evaluation
) -> tuple[int, str, tuple[tuple[str, str], ...], str]:
    """Return status, message, headers and body of a denial, as the scheme wants them. Its headers replace the
    challenges.
    """
    message = evaluation.secrets.mask_text(message) if denial.message is None else _text(denial.message, evaluation)
    message = _one_line(message)
    body = "" if denial.body is None else _text(denial.body, evaluation)
    if denial.headers:
        headers = [(each.name, _one_line(_text(each.value, evaluation))) for each in denial.headers]
    return denial.code or status, message, (*headers, (REASON_HEADER, message)), body


def _text(value: Value, evaluation: Evaluation) -> str:
    """Return the value, or nothing where it cannot be resolved: a denial stays one."""
    finding = resolve(value, evaluation.document)
    return stringified(evaluation.secrets.mask_answer(finding.masked)) if isinstance(finding, Found) else ""


def _one_line(text: str) -> str:
    """Return the text as a header can have it: ASCII, on one line."""
    if text.isascii() and text.isprintable():
        return text
    return json.dumps(text)[1:-1].replace('\\"', '"')
