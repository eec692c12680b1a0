"""Reads the checks of Envoys: the caller from the verified certificate, and the configuration of the operator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from cryptography import x509

from eastgate.cluster.ends import ANONYMOUS, UNKNOWN_CALLER, Source, SpiffeId
from eastgate.control.authorizer.checks import Body, ProxyAnswer, ProxyCheck, ProxyOptions
from eastgate.envoy.authz.server import CheckReply, ReceivedCheck
from eastgate.ir.spiffe import spiffe_problem

_FROM_METADATA = "metadata"
_MAX_CACHED_CERTIFICATES = 1024


def check_of(received: ReceivedCheck, proxy: ProxyOptions) -> ProxyCheck:
    """Return the check in a call of an Envoy.

    The extensions `to` and `port` name the destination. `mcp: metadata` states that Envoy's own filter also reads the
    body.
    """
    extensions = received.extensions
    joined = () if received.exact_headers else (name for name, (value,) in received.headers.items() if "," in value)
    port = extensions.get("port", "")
    return ProxyCheck(
        source=_source(received),
        method=received.method or None,
        path=received.path or None,
        host=received.host or None,
        headers=received.headers,
        shown_headers=proxy.shown_headers or None,
        unclear_headers=frozenset(joined),
        http_protocol=received.protocol or None,
        scheme=received.scheme or None,
        sni=received.sni or None,
        address=received.address or None,
        source_port=received.port or None,
        destination=(received.destination, received.destination_port) if received.destination else None,
        certificate=received.certificate or None,
        body=Body(received.body, _is_complete(received, proxy)) if received.body else None,
        shows_bodies=proxy.whole_bodies,
        to=extensions.get("to"),
        port=int(port) if port.isascii() and port.isdigit() else None,
        mcp=_message(received.mcp) if extensions.get("mcp") == _FROM_METADATA else None,
        proxy_id=received.id or None,
        extensions=extensions,
    )


def source_of_principal(principal: str) -> Source:
    """Return the caller that a verified certificate names.

    A name that is no SPIFFE ID is not an identity. A name that begins like a SPIFFE ID and is not valid is an unknown
    caller.
    """
    if spiffe_problem(principal) is None:
        return SpiffeId(principal)
    return UNKNOWN_CALLER if principal.lower().startswith("spiffe:") else ANONYMOUS


def _source(received: ReceivedCheck) -> Source:
    """Return the caller. It is unknown if the certificate has several URIs: Envoy names only the first."""
    source = source_of_principal(received.principal)
    uris = _uris(received.certificate) if received.certificate else (received.principal,)
    is_clear = uris == (received.principal,) or (uris == () and source == ANONYMOUS)
    return source if is_clear else UNKNOWN_CALLER


@lru_cache(_MAX_CACHED_CERTIFICATES)
def _uris(certificate: str) -> tuple[str, ...] | None:
    """Return the URIs in a certificate, or None if it cannot be read."""
    try:
        leaf = x509.load_pem_x509_certificate(certificate.encode())
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    except (ValueError, x509.DuplicateExtension):
        return None
    return tuple(names.get_values_for_type(x509.UniformResourceIdentifier))


def _is_complete(received: ReceivedCheck, proxy: ProxyOptions) -> bool:
    """Return whether the check has the whole body.

    An Envoy that may cut bodies sets "not cut" in one more case: the beginning of a longer body is exactly as long as
    its limit. Then only the `content-length` of the client decides.
    """
    lengths = received.headers.get("content-length")
    if lengths is None:
        return received.complete and proxy.whole_bodies
    return received.complete and lengths == [str(len(received.body))]


def _message(mcp: Mapping[str, object]) -> tuple[str | None, str | None]:
    method, params = mcp.get("method"), mcp.get("params")
    name = params.get("name", params.get("uri")) if isinstance(params, dict) else None
    return method if isinstance(method, str) else None, name if isinstance(name, str) else None


def reply_of(answer: ProxyAnswer) -> CheckReply:
    """Return an answer in the form that Envoy gets."""
    return CheckReply(
        answer.allowed,
        answer.status,
        answer.upstream_headers,
        answer.upstream_removed,
        answer.removed_parameters,
        answer.client_headers,
        answer.body,
    )
