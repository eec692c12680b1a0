"""Checks of single values of an AccessPolicy or a Backend: names, identities, hosts, paths, headers.

A rejected value could never match, or would match other requests than its author meant.
"""

from __future__ import annotations

import re

from eastgate.basics.regexes import regex
from eastgate.cluster.names import dns_label_problem, dns_subdomain_problem
from eastgate.cluster.patterns import pattern_problem
from eastgate.dialects.accesspolicy import codes
from eastgate.dialects.accesspolicy.validation import Checking
from eastgate.ir.addresses import comparable_host
from eastgate.ir.paths import control_character, path_problem
from eastgate.ir.spiffe import service_account_id, spiffe_problem
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import constraint, quoted
from eastgate.reading.manifests.shapes.shape import DNS_SUBDOMAIN, SPIFFE_ID, whole

_MAX_RULE_NAME_LENGTH = 63
_MAX_HOST_LENGTH = 253
_MAX_PATH_LENGTH = 1024
_LONGEST_HEADER_NAME, _MAX_HEADER_VALUE_LENGTH = 256, 4096


# Names and identities


@constraint(minLength=1, maxLength=_MAX_RULE_NAME_LENGTH, pattern=whole(DNS_SUBDOMAIN))
def rule_name(node: Node, to: Checking) -> None:
    """Require a DNS name of 1 to 63 characters."""
    too_long = len(node.text) > _MAX_RULE_NAME_LENGTH
    problem = f"it is longer than {_MAX_RULE_NAME_LENGTH} characters" if too_long else dns_subdomain_problem(node.text)
    if problem is not None:
        near = re.sub(r"[^a-z0-9]+", "-", node.text.lower())[:_MAX_RULE_NAME_LENGTH].strip("-") or "read-only"
        message = f"{quoted(node.text)} cannot name a rule: {problem}"
        to.report(codes.RULE_NAME, message, node, help=f"write {near}")


@constraint(maxLength=2048, pattern=whole(SPIFFE_ID))
def spiffe_id(node: Node, to: Checking) -> None:
    """Require a full SPIFFE ID. A trust domain alone is no identity."""
    problem = spiffe_problem(node.text)
    if problem is not None:
        message = f"{quoted(node.text)} is not a SPIFFE ID: {problem}"
        to.report(codes.SPIFFE_ID, message, node, help=_spiffe_way_out(node.text, to.context.trust_domain))


def _spiffe_way_out(text: str, trust_domain: str) -> str:
    """Suggest a SPIFFE ID for an identity without scheme (as in Istio), or for a service account."""
    if spiffe_problem(f"spiffe://{text}") is None and "/ns/" in text:
        return f"write spiffe://{text}"
    account = _account(text)
    if account is not None:
        return f"write type: ServiceAccount and serviceAccount: {{namespace: {account[0]}, name: {account[1]}}}"
    example = service_account_id(trust_domain, "<namespace>", "<name>")
    return f"write spiffe://<trust domain>/<path>, such as {example}"


@constraint(minLength=1, maxLength=253, pattern=whole(DNS_SUBDOMAIN))
def account_name(node: Node, to: Checking) -> None:
    """Require the name of one account. `*` is not supported here."""
    problem = dns_subdomain_problem(node.text)
    if problem is None:
        return
    account = _account(node.text)
    if account is not None:
        way_out = f"write namespace: {account[0]} and name: {account[1]}"
    elif spiffe_problem(node.text) is None:
        way_out = f"it is a SPIFFE ID: write type: SPIFFE and spiffe: {node.text}"
    elif "*" in node.text:
        way_out = "write a rule for each service account"
    else:
        way_out = "write the name of one service account"
    message = f"{quoted(node.text)} is not the name of a service account: {problem}"
    to.report(codes.ACCOUNT, message, node, help=way_out)


def _account(text: str) -> tuple[str, str] | None:
    """Return namespace and name of an account in one text."""
    parts = re.fullmatch(r"(?:system:serviceaccount:)?([^:/]+)[:/]([^:/]+)", text)
    if parts is None or dns_label_problem(parts[1]) is not None or dns_subdomain_problem(parts[2]) is not None:
        return None
    return parts[1], parts[2]


# Paths


def path_match(node: Node, to: Checking) -> None:
    """Check a path match. Exact and prefix values must be in the canonical form of paths."""
    value, kind = node.get("value"), node.get("type")
    way = kind.text if kind is not None else "PathPrefix"
    if value is None or (not value.text and way != "PathPrefix"):
        if way != "PathPrefix":  # an empty prefix matches every path; the other types would match none
            message = f"a path match of type {way} needs a value"
            to.report(codes.HTTP_VALUE, message, value or node, help="write value: .., or type: PathPrefix")
    elif len(value.text) > _MAX_PATH_LENGTH:
        _not_a_path(value, f"it is longer than {_MAX_PATH_LENGTH} characters", "write a shorter one", to)
    elif (control := control_character(value.text)) is not None:
        _not_a_path(value, f"it has a control character ({control})", "remove it", to)
    elif way == "RegularExpression":
        _pattern(value, to)
    elif value.text:
        _plain_path(value, to)


def _plain_path(node: Node, to: Checking) -> None:
    text = node.text
    if not text.startswith("/"):
        _not_a_path(node, "it does not begin with /", f"write /{text}", to)
    elif "*" in text:
        stem = text.partition("*")[0].rstrip("/") or "/"
        way_out = f"write type: PathPrefix and value: {stem}, or type: RegularExpression"
        _not_a_path(node, "`*` is not a wildcard here", way_out, to)
    elif (problem := path_problem(text)) is not None:
        _not_a_path(node, *problem, to)


def _not_a_path(node: Node, problem: str, way_out: str, to: Checking) -> None:
    to.report(codes.HTTP_VALUE, f"{quoted(node.text)} is not a path: {problem}", node, help=way_out)


_PREFIX = regex(r"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})+")


@constraint(maxLength=_MAX_PATH_LENGTH, pattern=whole(_PREFIX.pattern))
def prefix(node: Node, to: Checking) -> None:
    """Check the prefix that an HTTP authorizer gets before the path of each request."""
    if len(node.text) > _MAX_PATH_LENGTH or not _PREFIX.fullmatch(node.text):
        message = f"{quoted(node.text)} cannot be the prefix of a path"
        to.report(codes.AUTHORIZER, message, node, help="write a path such as /check, or leave it out")


@constraint(maxLength=_MAX_PATH_LENGTH, pattern=whole(_PREFIX.pattern), anyOf=[{"pattern": "^/"}])
def backend_path(node: Node, to: Checking) -> None:
    """Check the path of the MCP endpoint of a Backend."""
    if not node.text.startswith("/") or not _PREFIX.fullmatch(node.text) or len(node.text) > _MAX_PATH_LENGTH:
        message = f"{quoted(node.text)} is not the path of a Backend"
        to.report(codes.DESTINATION, message, node, help="write a path such as /mcp, which is the default")


# Headers

_TOKEN = regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@constraint(maxLength=_LONGEST_HEADER_NAME, pattern=whole(_TOKEN.pattern))
def header_name(node: Node, to: Checking) -> None:
    """Require an HTTP token."""
    if len(node.text) > _LONGEST_HEADER_NAME or not _TOKEN.fullmatch(node.text):
        message = f"{quoted(node.text)} is not the name of a header"
        to.report(codes.HTTP_VALUE, message, node, help="write a name such as x-team")


def header(node: Node, to: Checking) -> None:
    """Check the value that a header is compared with."""
    kind, value = node.get("type"), node["value"]
    if not 1 <= len(value.text) <= _MAX_HEADER_VALUE_LENGTH:
        message = f"the value of a header has 1 to {_MAX_HEADER_VALUE_LENGTH} characters, not {len(value.text)}"
        to.report(codes.HTTP_VALUE, message, value, help="write the value to compare with")
    elif kind is not None and kind.text == "RegularExpression":
        _pattern(value, to)


def _pattern(node: Node, to: Checking) -> None:
    problem = pattern_problem(node.text)
    if problem is not None:
        message = f"{quoted(node.text)} is not a regular expression: {problem}"
        way_out = "write an RE2 expression; it is matched against the whole value"
        to.report(codes.HTTP_VALUE, message, node, help=way_out)


# Hosts

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_HOSTNAME = regex(rf"{_LABEL}(\.{_LABEL})*")


@constraint(pattern=whole(rf"(\*\.)?{_HOSTNAME.pattern}"), maxLength=_MAX_HOST_LENGTH + 2)
def host(node: Node, to: Checking) -> None:
    """Require a host, or `*.` and a host."""
    if not _is_host(node.text.removeprefix("*.")):
        to.report(codes.HTTP_VALUE, f"{quoted(node.text)} is not a host", node, help=_host_way_out(node.text))


def _is_host(text: str) -> bool:
    return len(text) <= _MAX_HOST_LENGTH and _HOSTNAME.fullmatch(text) is not None


def _host_way_out(text: str) -> str:
    if text == "*":
        return "leave `hosts` out to match any host"
    near = comparable_host(re.sub(r"^[a-z]+://", "", text.lower()).partition("/")[0])
    if _is_host(near.removeprefix("*.")):
        return f"write {near}: hosts are compared without scheme, port and letter case"
    return "write a name such as api.example.com, or *.example.com"


@constraint(maxLength=_MAX_HOST_LENGTH, pattern=whole(_HOSTNAME.pattern))
def hostname(node: Node, to: Checking) -> None:
    """Require the host of a Backend: a single host without wildcard."""
    if not _is_host(node.text):
        near = comparable_host(re.sub(r"^[a-z]+://", "", node.text.lower()).partition("/")[0])
        way_out = f"write {near}; port and path have fields of their own" if _is_host(near) else "write one host"
        to.report(codes.DESTINATION, f"{quoted(node.text)} is not the name of a host", node, help=way_out)
