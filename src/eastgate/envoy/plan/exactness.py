"""What Envoy can test exactly as a policy means it. Whatever is near is not enough."""

from __future__ import annotations

from eastgate.basics.diagnostics import Code
from eastgate.basics.regexes import regex
from eastgate.envoy.plan.codes import NOT_A_TEST, NOT_AN_ATTRIBUTE
from eastgate.envoy.plan.vantage import Vantage
from eastgate.ir import Computed, Is, OneOf, Prefix, Suffix
from eastgate.ir.attributes import Attribute

# Envoy adds them, takes them away, or writes them otherwise, before a policy can look at them.
_ENVOYS_HEADERS = frozenset(
    {
        *("connection", "expect", "host", "http2-settings", "keep-alive", "proxy-connection", "te"),
        *("transfer-encoding", "upgrade", "x-forwarded-client-cert", "x-forwarded-proto"),
    }
)
# Of these Envoy makes one text with commas, and forgets empty values, where they are there several times.
_JOINED_HEADERS = frozenset(
    {
        *("accept", "accept-encoding", "access-control-request-headers", "access-control-request-method"),
        *("access-control-request-private-network", "authentication", "authorization", "cache-control", "cdn-loop"),
        *("content-encoding", "content-length", "content-type", "grpc-accept-encoding", "grpc-timeout", "if-match"),
        *("if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "origin", "pragma", "proxy-status"),
        *("referer", "user-agent", "via", "x-client-trace-id", "x-forwarded-for", "x-forwarded-host"),
        *("x-forwarded-port", "x-request-id"),
    }
)
_COOKIE = "cookie"  # of HTTP/2
_NOT_NOTED = regex("[\x00\x02\x03]")  # a proxy cannot note them of a request


def obstacle(atom: Is | Computed, vantage: Vantage) -> tuple[Code, str] | None:
    """Return why an atom cannot be tested where a proxy stands; None where it can."""
    attributes = (atom.attribute,) if isinstance(atom, Is) else atom.attributes
    unseen = [attribute for attribute in attributes if not vantage.sees(attribute)]
    if unseen:
        return NOT_AN_ATTRIBUTE, f"a {vantage.name} does not know the {unseen[0]}"
    return None if _is_exact(atom) else (NOT_A_TEST, f"Envoy has no test that is exactly `{atom}`")


def joint_of(attribute: Attribute) -> str | None:
    """Return the text by which Envoy joins the values of a header; None where it keeps them apart."""
    if not attribute.is_header:
        return None
    return "," if attribute.key in _JOINED_HEADERS else "; " if attribute.key == _COOKIE else None


def _is_exact(atom: Is | Computed) -> bool:
    if isinstance(atom, Computed):
        return atom.pattern is not None and _sees(atom, atom.pattern[0])
    return not atom.joined and _sees(atom, atom.attribute) and not _NOT_NOTED.search(_texts(atom))


def _sees(atom: Is | Computed, attribute: Attribute) -> bool:
    """Return whether Envoy shows all values of an attribute that the test tells from others."""
    if not attribute.is_header:
        return True
    if attribute.key in _ENVOYS_HEADERS or attribute.key.startswith("x-envoy-"):
        return False
    return joint_of(attribute) is None or not _tells_empty(atom, attribute)


def _tells_empty(atom: Is | Computed, attribute: Attribute) -> bool:
    if isinstance(atom, Computed):
        return atom.holds({attribute: ""})
    return isinstance(atom.matcher, OneOf) and "" in atom.matcher.values


def _texts(atom: Is) -> str:
    match atom.matcher:
        case OneOf(values):
            return "".join(map(str, values))
        case Prefix(text) | Suffix(text):
            return text
        case _:
            return ""
