"""Checks of single values of a rule, as in Istio's webhook: addresses, ports, accounts, paths, conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from eastgate.basics.diagnostics import did_you_mean
from eastgate.basics.regexes import regex
from eastgate.dialects.istio import codes
from eastgate.dialects.istio.validation import Checking
from eastgate.ir.addresses import Network, mapped_problem, parse_network
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import quoted

MATCH_ONE: Final = "{*}"
MATCH_ANY: Final = "{**}"
_LITERAL = regex(r"[a-zA-Z0-9._~%!$&'()+,;:@=-]+")
_BITS = regex(r"0|[1-9][0-9]{0,2}")
_MAX_ACCOUNT_CHARACTERS: Final = 320
_MAX_ACCOUNTS: Final = 16

Rule = Callable[[Node, Checking], None]


def some_text(node: Node, to: Checking) -> None:
    """Reject an empty value."""
    if not node.text:
        to.report(codes.EMPTY_VALUE, "an empty value matches nothing", node, help="write a value, or remove it")


# Addresses and ports


def network_of(text: str) -> Network:
    """Return the network of a CIDR or of one address. Host bits are ignored. Raises ValueError."""
    _, slash, bits = text.partition("/")
    if "%" in text or (slash and not _BITS.fullmatch(bits)):
        raise ValueError(text)
    return parse_network(text)


def address(node: Node, to: Checking) -> None:
    """Require an address, or a network in CIDR notation."""
    try:
        network_of(node.text)
    except ValueError:
        message = f"{quoted(node.text)} is neither an address nor a network"
        help_ = mapped_problem(node.text) or "write an address such as 10.1.2.3, or a network: 10.1.0.0/16"
        to.report(codes.ADDRESS, message, node, help=help_)


def port_of(text: str) -> int:
    """Return the number of a port. Raises ValueError."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise ValueError(text)
    return int(text)


def port(node: Node, to: Checking) -> None:
    """Require the number of a port."""
    try:
        port_of(node.text)
    except ValueError:
        message = f"{quoted(node.text)} is not a port"
        to.report(codes.PORT, message, node, help='write a number between 0 and 65535, such as "8080"')


# Identities


def service_account(node: Node, to: Checking) -> None:
    """Require `<namespace>/<name>` or `<name>`, without wildcards."""
    problem = _account_problem(node.text)
    if problem is not None:
        message = f"{quoted(node.text)} is not a service account: {problem}"
        help_ = "write <namespace>/<name>, or <name>"
        if "*" in node.text:
            help_ = "name each account, or write `namespaces` or `principals`, which have wildcards"
        to.report(codes.SERVICE_ACCOUNT, message, node, help=help_)


def _account_problem(text: str) -> str | None:
    namespace, slash, name = text.partition("/")
    if not text:
        return "it is empty"
    if "*" in text:
        return "it has a wildcard"
    if "/" in name:
        return "it has more than one '/'"
    if len(text) > _MAX_ACCOUNT_CHARACTERS:
        return f"it is longer than {_MAX_ACCOUNT_CHARACTERS} characters"
    if slash and not (namespace and name):
        return "the namespace is empty" if not namespace else "the name is empty"
    return None


def trust_domain(node: Node, to: Checking) -> None:
    """Require a trust domain, with at most one wildcard, at one of its ends."""
    problem = _wildcard_problem(node.text) or ("it has a '/'" if "/" in node.text else None)
    if problem is not None:
        _report_trust_domain(node, problem, to)


def _wildcard_problem(text: str) -> str | None:
    if not text:
        return "it is empty"
    if text.count("*") > 1:
        return "it has more than one wildcard"
    if "*" in text[1:-1]:
        return "the wildcard is in the middle"
    return None


def _report_trust_domain(node: Node, problem: str, to: Checking) -> None:
    message = f"{quoted(node.text)} is not a trust domain: {problem}"
    to.report(codes.TRUST_DOMAIN, message, node, help="write one such as cluster.local, or *.example.com")


# Paths


def is_template(path: str) -> bool:
    """Return whether a path contains operators of templates."""
    return MATCH_ONE in path or MATCH_ANY in path


def path(node: Node, to: Checking) -> None:
    """Require a path. If it contains operators of templates, it must be a template that Envoy accepts."""
    some_text(node, to)
    problem = _template_problem(node.text)
    if problem is not None:
        message = f"{quoted(node.text)} is not a path template: {problem}"
        to.report(codes.PATH_TEMPLATE, message, node, help="write one such as /users/{*}/files/{**}")


def _template_problem(text: str) -> str | None:
    template, any_was_before = is_template(text), False
    for segment in text.strip("/").split("/"):
        if segment in (MATCH_ONE, MATCH_ANY):
            if any_was_before:
                return "{**} is not the last operator"
            any_was_before = segment == MATCH_ANY
        elif "{" in segment or "}" in segment:
            return "it has a brace outside of {*} and {**}, each of which is a whole segment"
        elif template and not _LITERAL.fullmatch(segment):
            return f"the segment {quoted(segment)} has a character that no path has" if segment else "it has `//`"
    if template and (not text.startswith("/") or "//" in text):
        return "it has `//`" if "//" in text else "it does not begin with /"
    return None


# Conditions


def name_in_brackets(key: str, attribute: str) -> str | None:
    """Return the text in brackets after an attribute: `a` in `request.headers[a]`. None if there are no brackets."""
    rest = key.removeprefix(attribute)
    return rest[1:-1] if key.startswith(attribute) and len(rest) > 2 and rest[0] == "[" and rest[-1] == "]" else None


def _any_text(node: Node, to: Checking) -> None:
    some_text(node, to)


def _wildcard(node: Node, to: Checking) -> None:
    problem = _wildcard_problem(node.text)
    if problem is not None:
        _report_trust_domain(node, problem, to)


_KEYS: Final[dict[str, Rule]] = {
    "source.ip": address,
    "remote.ip": address,
    "source.namespace": _any_text,
    "source.serviceAccount": service_account,
    "source.principal": _any_text,
    "source.trustDomain": _wildcard,
    "request.auth.principal": _any_text,
    "request.auth.audiences": _any_text,
    "request.auth.presenter": _any_text,
    "destination.ip": address,
    "destination.port": port,
    "connection.sni": _any_text,
}
_NAMED: Final = ("request.headers", "request.auth.claims")
_EXPERIMENTAL: Final = "experimental.envoy.filters."
_REPLACED: Final = {
    "destination.namespace": "it is the namespace of the policy",
    "destination.labels": "select the workload by `selector`",
    "destination.name": "it was for v1alpha1 only: select the workload by `selector`",
    "destination.user": "it was for v1alpha1 only: select the workload by `selector`",
}


def condition(node: Node, to: Checking) -> None:
    """Check the key of a condition, and its values by the rules of the key."""
    key = node["key"]
    rule = _rule_of(key.text)
    lists = [node[name] for name in ("values", "notValues") if name in node]
    if rule is None:
        to.report(codes.CONDITION_KEY, f"{quoted(key.text)} is not an attribute", key, help=_key_help(key.text))
    elif not any(list(values) for values in lists):
        to.report(
            codes.CONDITION_VALUES,
            "a condition needs `values` or `notValues`",
            lists[0] if lists else key,
            help="write values: [..], or remove the condition",
        )
    else:
        for value in (value for values in lists for value in values):
            if isinstance(value.value, str):  # other types are already reported
                rule(value, to)
        for values in lists if rule is service_account else ():
            too_many_accounts(values, to)


def too_many_accounts(values: Node, to: Checking) -> None:
    """Reject more service accounts than an API server accepts."""
    listed = list(values)
    if len(listed) > _MAX_ACCOUNTS:
        message = f"there are {len(listed)} service accounts, but an API server accepts only {_MAX_ACCOUNTS}"
        to.report(codes.TOO_MANY, message, listed[_MAX_ACCOUNTS], help="write several rules")


def _rule_of(key: str) -> Rule | None:
    if key in _KEYS:
        return _KEYS[key]
    if any(name_in_brackets(key, attribute) for attribute in _NAMED):
        return _any_text
    attribute, bracket, _ = key.partition("[")
    experimental = attribute.startswith(_EXPERIMENTAL) and attribute != _EXPERIMENTAL
    return _any_text if experimental and name_in_brackets(key, attribute) and bracket else None


def _key_help(key: str) -> str:
    attribute, _, rest = key.partition("[")
    if attribute in _REPLACED:
        return _REPLACED[attribute]
    if attribute in _NAMED or attribute.startswith(_EXPERIMENTAL):
        return f"write {attribute}[<name>]"
    near = did_you_mean(attribute, [*_KEYS, *_NAMED])
    name = rest.removesuffix("]") or "<name>"
    if near is not None:
        return f"did you mean `{near}[{name}]`?" if near in _NAMED else f"did you mean `{near}`?"
    return f"the attributes are {', '.join([*_KEYS, *(f'{each}[<name>]' for each in _NAMED)])}"
