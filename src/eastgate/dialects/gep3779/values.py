"""Checks of single values of a rule: service accounts, identities, paths, methods.

A rejected value could never match, or would match other requests than its author meant.
"""

from __future__ import annotations

import re

from eastgate.basics.diagnostics import Code
from eastgate.basics.regexes import regex
from eastgate.cluster.names import dns_label_problem, dns_subdomain_problem
from eastgate.dialects.gep3779 import codes
from eastgate.dialects.gep3779.validation import Checking
from eastgate.ir.paths import path_problem
from eastgate.ir.spiffe import service_account_id, spiffe_problem
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import constraint, quoted
from eastgate.reading.manifests.shapes.shape import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    NOT_COMPARABLE,
    SPIFFE_ID,
    path_with_wildcard,
    whole,
)

_ACCOUNT = rf"{DNS_LABEL}/({DNS_SUBDOMAIN}|\*)"
_LENGTHS = [{"pattern": "(^|/)[^/]{1,253}$"}]


@constraint(maxLength=317, pattern=whole(f"{_ACCOUNT}|{DNS_SUBDOMAIN}"), anyOf=_LENGTHS)
def service_account(node: Node, to: Checking) -> None:
    """Require `<namespace>/<name>`, `<namespace>/*` or `<name>`."""
    _service_account(node, to, bare=None)


@constraint(maxLength=317, pattern=whole(_ACCOUNT), anyOf=_LENGTHS)
def service_account_anywhere(node: Node, to: Checking) -> None:
    """Require `<namespace>/<name>` or `<namespace>/*`, as in a cluster policy."""
    _service_account(node, to, bare=codes.BARE_SERVICE_ACCOUNT)


def _service_account(node: Node, to: Checking, bare: Code | None) -> None:
    if node.text == "*":
        to.report(
            codes.EVERY_SERVICE_ACCOUNT,
            "`*` alone is not a service account",
            node,
            help="write <namespace>/* for each namespace, or leave the source out to match any caller",
        )
        return
    problem = _account_problem(node.text)
    if problem is not None:
        to.report(
            codes.SERVICE_ACCOUNT,
            f"{quoted(node.text)} is not a service account: {problem}",
            node,
            help=_account_way_out(node.text)
            or ("write <namespace>/<name>, <namespace>/* or <name>" if bare is None else _NAMED_HELP),
        )
    elif "/" not in node.text and bare is not None:
        to.report(bare, f"`{node.text}` has no namespace", node, help=f"write <namespace>/{node.text}")


_NAMED_HELP = "write <namespace>/<name> or <namespace>/*"


def _account_problem(text: str) -> str | None:
    """Return why a text is not `<namespace>/<name>`, `<namespace>/*` or `<name>`; None if it is valid."""
    namespace, slash, name = text.rpartition("/")
    if "/" in namespace:
        return "it has more than one '/'"
    if slash:
        problem = "it is `*`" if namespace == "*" else dns_label_problem(namespace)
        if problem is not None:
            return f"the namespace is wrong: {problem}"
    problem = None if slash and name == "*" else dns_subdomain_problem(name)
    return f"the name is wrong: {problem}" if problem is not None and slash else problem


def _account_way_out(text: str) -> str | None:
    """Suggest how to write an identity in the form of another API."""
    if spiffe_problem(text) is None:
        return "it is a SPIFFE ID: write it in `identities`"
    user = re.fullmatch(r"system:serviceaccount:([^:]+):([^:]+)", text)
    return f"write {user[1]}/{user[2]}" if user else None


@constraint(maxLength=317, pattern=whole(f"{DNS_LABEL}/{DNS_SUBDOMAIN}"), anyOf=_LENGTHS)
def service_account_v1alpha1(node: Node, to: Checking) -> None:
    """Require `<namespace>/<name>`, as in the Provisional draft."""
    namespace, slash, name = node.text.rpartition("/")
    if not slash:
        problem: str | None = "there is no namespace"
    else:
        problem = _account_problem(node.text) or ("it is a whole namespace" if name == "*" else None)
    if problem is not None:
        whole = slash and name == "*" and dns_label_problem(namespace) is None
        to.report(
            codes.SERVICE_ACCOUNT_V1ALPHA1,
            f"{quoted(node.text)} is not <namespace>/<name>: {problem}",
            node,
            help=f"write a source with namespaces: [{namespace}]"
            if whole
            else _account_way_out(node.text) or "write <namespace>/<name>",
        )


@constraint(maxLength=2048, pattern=whole(SPIFFE_ID))
def spiffe_id(node: Node, to: Checking) -> None:
    """Require a full SPIFFE ID."""
    problem = spiffe_problem(node.text)
    if problem is not None:
        to.report(
            codes.SPIFFE_ID,
            f"{quoted(node.text)} is not a SPIFFE ID: {problem}",
            node,
            help=_spiffe_way_out(node.text, to.context.trust_domain),
        )


def _spiffe_way_out(text: str, trust_domain: str) -> str:
    """Suggest a SPIFFE ID for an identity without scheme (as in Istio), or for a service account."""
    namespace, slash, name = text.partition("/")
    if spiffe_problem(f"spiffe://{text}") is None and "/ns/" in text:
        return f"write spiffe://{text}"
    if slash and name != "*" and _account_problem(text) is None:
        return f"write {service_account_id(trust_domain, namespace, name)}, or write it as a service account"
    example = service_account_id(trust_domain, "<namespace>", "<name>")
    return f"write spiffe://<trust domain>/<path>, such as {example}"


ACCOUNT_NAME_HELP = 'write name: <its name>, or name: "*" for every service account of the namespace'


@constraint(minLength=1, maxLength=253, pattern=whole(rf"{DNS_SUBDOMAIN}|\*"))
def account_name(node: Node, to: Checking) -> None:
    """Require, in the X kind, the name of a service account, or `*` for all accounts of the namespace."""
    problem = None if node.text == "*" else dns_subdomain_problem(node.text)
    if problem is not None:
        to.report(
            codes.SERVICE_ACCOUNT,
            f"{quoted(node.text)} is not the name of a service account: {problem}",
            node,
            help=ACCOUNT_NAME_HELP,
        )


@constraint(pattern=path_with_wildcard(), not_={"pattern": NOT_COMPARABLE})
def path(node: Node, to: Checking) -> None:
    """Require a path, exact or with one `*` at its start or end, in the canonical form of request paths."""
    problem = _path_problem(node.text)
    if problem is not None:
        reason, way_out = problem
        to.report(codes.PATH_PATTERN, f"{quoted(node.text)} is not a path: {reason}", node, help=way_out)


def _path_problem(text: str) -> tuple[str, str] | None:
    if not text:
        return "it is empty", "write /, or a path such as /api/*"
    if "*" in (text.removeprefix("*") if text.startswith("*") else text.removesuffix("*")):
        return "`*` is allowed once, at its start or end", "write /api/*, or */suffix"
    if not text.startswith(("/", "*")):
        return "it does not begin with /", f"write /{text}"
    return path_problem(text, wildcard=True)


_TOKEN = regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")


@constraint(pattern=r"^[!#$%&'+.^_`|~0-9A-Za-z-]+$")
def method(node: Node, to: Checking) -> None:
    """Require an HTTP token. Methods are case-sensitive."""
    if not _TOKEN.fullmatch(node.text) or "*" in node.text:
        to.report(
            codes.METHOD,
            f"{quoted(node.text)} is not an HTTP method",
            node,
            help="leave `methods` out to match any method" if node.text == "*" else "write one such as GET or POST",
        )
    elif node.text.upper() in _METHODS and node.text not in _METHODS:
        to.report(
            codes.METHOD_CASE,
            f"`{node.text}` does not match {node.text.upper()}",
            node,
            help=f"write {node.text.upper()}",
        )
