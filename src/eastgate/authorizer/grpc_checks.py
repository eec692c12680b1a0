"""What the checks of Envoys mean: who calls by the certificate that was verified, and what the operator configured."""

from __future__ import annotations

from collections.abc import Mapping

from eastgate.api.questions.ends import ANONYMOUS
from eastgate.authorizer.checks import Body, ProxyAnswer, ProxyCheck
from eastgate.envoy.authz.server import CheckReply, ReceivedCheck
from eastgate.ir.spiffe import spiffe_problem

__all__ = ["check_of", "reply_of", "source_of_principal"]

_FROM_METADATA = "metadata"


def check_of(received: ReceivedCheck) -> ProxyCheck:
    """Return the check that an Envoy asks for.

    Of its extensions, `to` and `port` say where the request goes; `mcp: metadata` says that what Envoy's own filter
    read in the body is to be relied on.
    """
    extensions = received.extensions
    mcp_method, mcp_name = _message(received.mcp) if extensions.get("mcp") == _FROM_METADATA else (None, None)
    joined = () if received.exact_headers else (name for name, (value,) in received.headers.items() if "," in value)
    port = extensions.get("port", "")
    return ProxyCheck(
        source=source_of_principal(received.principal),
        method=received.method or None,
        path=received.path or None,
        host=received.host or None,
        headers=received.headers,
        joined_headers=frozenset(joined),
        http_protocol=received.protocol or None,
        scheme=received.scheme or None,
        sni=received.sni or None,
        address=received.address or None,
        source_port=received.port or None,
        destination=(received.destination, received.destination_port) if received.destination else None,
        certificate=received.certificate or None,
        body=Body(received.body, received.complete) if received.body else None,
        to=extensions.get("to"),
        port=int(port) if port.isascii() and port.isdigit() else None,
        mcp_method=mcp_method,
        mcp_name=mcp_name,
        proxy_id=received.id or None,
        extensions=extensions,
    )


def source_of_principal(principal: str) -> str:
    """Return the caller that a verified certificate names. What is no SPIFFE ID is no identity."""
    return principal if spiffe_problem(principal) is None else ANONYMOUS


def _message(mcp: Mapping[str, object]) -> tuple[str | None, str | None]:
    method, params = mcp.get("method"), mcp.get("params")
    name = params.get("name", params.get("uri")) if isinstance(params, dict) else None
    return method if isinstance(method, str) else None, name if isinstance(name, str) else None


def reply_of(answer: ProxyAnswer) -> CheckReply:
    """Return an answer as an Envoy gets it."""
    return CheckReply(
        answer.allowed,
        answer.status,
        answer.upstream_headers,
        answer.upstream_removed,
        answer.client_headers,
        answer.body,
    )
