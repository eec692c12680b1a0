"""Finds the client certificate of a request: of its connection, or in a header that a proxy in front has written."""

from __future__ import annotations

import base64
import binascii
import textwrap
from collections.abc import Iterator
from urllib.parse import unquote, unquote_plus

from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.findings import Broken, Found, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.model import CelExpression, CertificateFormat, CertificateHeader
from eastgate.dialects.kuadrant.authorino.values import resolve
from eastgate.ir.attributes import UNKNOWN

_MALFORMED = regex(r"%(?![0-9A-Fa-f]{2})")
_UNREADABLE = Refused("The client certificate cannot be read.")


def presented_certificate(
    source: CertificateHeader | CelExpression | None, evaluation: Evaluation
) -> str | Refused | NotKnown | Broken:
    """Return the certificate as PEM. In a header it is only as good as the proxy that wrote it."""
    match source:
        case None:
            return _of_connection(evaluation)
        case CertificateHeader(name, format_):
            headers = evaluation.request.headers
            if headers is UNKNOWN:
                return NotKnown("the headers")
            if name not in headers:
                return Refused(f"There is no client certificate in the header {name!r}.")
            pem = from_xfcc(headers[name]) if format_ is CertificateFormat.XFCC else from_client_cert(headers[name])
            return pem or _UNREADABLE
        case CelExpression():
            finding = resolve(source, evaluation.document)
            if not isinstance(finding, Found):
                return finding
            return (_decoded(finding.value) if isinstance(finding.value, str) else None) or _UNREADABLE


def _of_connection(evaluation: Evaluation) -> str | Refused | NotKnown:
    pem = evaluation.request.certificate
    if pem is UNKNOWN:
        return NotKnown("the client certificate")
    if not pem:
        return Refused("The client has no certificate.")
    return pem if "-----BEGIN CERTIFICATE" in pem else unquote(pem)


def from_xfcc(header: str) -> str | None:
    """Return the certificate of the first element of an X-Forwarded-Client-Cert header; without one, its chain."""
    first = next((element for element in _split(header, ",") if element), "")
    fields: dict[str, str] = {}
    for pair in _split(first.strip(), ";"):
        name, *value = _split(pair.strip(), "=", 1)
        if value:
            text = value[0].strip()
            quoted = len(text) >= 2 and text.startswith('"') and text.endswith('"')
            fields[name.strip().lower()] = text[1:-1] if quoted else text
    return _decoded(fields.get("cert") or fields.get("chain") or "")


def _split(text: str, separator: str, most: int = -1) -> Iterator[str]:
    """Yield the parts of a text between separators that are not in quotes, at most so many times."""
    start, in_quotes = 0, False
    for at, character in enumerate(text):
        if character == '"':
            in_quotes = not in_quotes
        elif character == separator and not in_quotes and most:
            yield text[start:at]
            start, most = at + 1, most - 1
    yield text[start:]


def from_client_cert(header: str) -> str | None:
    """Return the certificate of a Client-Cert header (RFC 9440): DER in Base64, between colons."""
    text = header.strip()
    if len(text) < 2 or not text.startswith(":") or not text.endswith(":"):
        return None
    try:
        der = base64.b64decode(text[1:-1].strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    body = "\n".join(textwrap.wrap(base64.b64encode(der).decode(), 64))
    return f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n" if der else None


def _decoded(text: str) -> str | None:
    """Return a PEM text that is written as in the query of a URL."""
    return None if not text or _MALFORMED.search(text) else unquote_plus(text)
