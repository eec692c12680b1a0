"""Lint: rules and values of AuthorizationPolicies that are easy to get wrong, as they are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from eastgate.basics.diagnostics import mistyped
from eastgate.basics.regexes import regex
from eastgate.dialects.istio import lint_codes as codes
from eastgate.dialects.istio.mesh_config import mesh_settings
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy
from eastgate.dialects.istio.written import Fields, IstioRule, WrittenValue, negated
from eastgate.dialects.linting import Context, Finding
from eastgate.ir.spiffe import SCHEME

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE")
_ACCOUNT = regex(r"[^/]+/ns/[^/]+/sa/[^/]+")
_KUBERNETES_USER: Final = "system:serviceaccount:"
_OPEN_TO_ALL = regex(
    r"/?\*?(.*/)?(\.well-known|actuator|api-docs|assets|callback|docs|favicon\.ico|health\w*|livez?|liveness|login"
    r"|metrics|oauth2?|openapi(\.\w+)?|ping|public|ready|readyz|readiness|robots\.txt|startup|static|status|swagger.*"
    r"|version)(/.*)?\*?"
)


def values_of(policy: IstioAuthorizationPolicy) -> Iterator[tuple[str, WrittenValue]]:
    """Yield every value of the rules of a policy, with the field or key that it stands in."""
    for rule in policy.rules:
        for entry in (*(rule.sources or ()), *(rule.operations or ())):
            for name, values in entry.items():
                yield from ((name, value) for value in values)
        for when in rule.conditions:
            yield from ((when.key, value) for value in when.values)


# Two rules


def check_two_rules(context: Context) -> Iterator[Finding]:
    """Report a rule with `from` alone beside a rule with `to` alone, in a policy that allows."""
    for policy in context.policies:
        if isinstance(policy, IstioAuthorizationPolicy) and policy.action is Action.ALLOW:
            reported = -1
            for pair in pairwise(policy.rules):
                by_caller = next((rule for rule in pair if rule.sources and not rule.operations), None)
                by_request = next((rule for rule in pair if rule.operations and not rule.sources), None)
                if by_caller is None or by_request is None or any(rule.conditions for rule in pair):
                    continue
                if pair[0].index > reported and not _is_open_to_all(by_request):
                    reported = pair[1].index
                    yield _two_rules(policy, by_caller, by_request, pair[1])


def _is_open_to_all(rule: IstioRule) -> bool:
    """Return whether a rule opens what is usually open: a port, or paths of probes, metrics and public files."""
    return all(
        entry.keys() == {"ports"}
        or ("paths" in entry and all(_OPEN_TO_ALL.fullmatch(value.text) for value in entry["paths"].values))
        for entry in rule.operations or ()
    )


def _two_rules(
    policy: IstioAuthorizationPolicy, by_caller: IstioRule, by_request: IstioRule, second: IstioRule
) -> Finding:
    message = (
        f"rule {by_request.index} of {policy.ref} allows {_words(by_request.operations or ())} to every caller, and "
        f"rule {by_caller.index} allows {_words(by_caller.sources or ())} everything"
    )
    field = "to" if second is by_request else "from"
    help_ = f"to allow only these requests of these callers, write one rule: remove the dash before `{field}`"
    return Finding(codes.TWO_RULES, message, second.span, help_, (str(policy.ref),))


def _words(entries: Sequence[Fields]) -> str:
    """Return sources or operations in the words of the policy."""
    lists = [
        (name if values is written.values else negated(name), values)
        for entry in entries[:2]
        for name, written in entry.items()
        for values in (written.values, written.not_values)
        if values
    ]
    said = [f"{name} {', '.join(value.text for value in values[:3])}" for name, values in lists[:3]]
    return ", ".join(said) + (" .." if len(entries) > 2 or len(lists) > 3 else "")


# Values


def check_spellings(context: Context) -> Iterator[Finding]:
    """Report values that no request and no caller has, with the right spelling."""
    trust_domain = mesh_settings(context.settings, context.world).trust_domain
    for policy in context.policies:
        if isinstance(policy, IstioAuthorizationPolicy):
            for name, value in values_of(policy):
                if name in ("principals", "source.principal"):
                    if is_misspelt(value.text):
                        yield _principal(policy, value, trust_domain)
                else:
                    yield from _other(policy, name, value)


def is_misspelt(principal: str) -> bool:
    """Return whether a text looks like a service account and is not written as the principal of one."""
    if principal.startswith((SCHEME, _KUBERNETES_USER)):
        return True
    if "*" in principal or _ACCOUNT.fullmatch(principal):
        return False
    parts = principal.split("/")
    if "ns" in parts[:2] or "sa" in parts[-2:-1]:
        return True
    return len(parts) <= 2 and "." not in parts[0]  # a trust domain that is not of Kubernetes has a dot


def _principal(policy: IstioAuthorizationPolicy, value: WrittenValue, trust_domain: str) -> Finding:
    message = f"no caller has the principal `{value.text}`"
    help_ = _principal_help(value.text, policy, trust_domain)
    return Finding(codes.NO_SUCH_PRINCIPAL, message, value.span, help_, (str(policy.ref),))


def _principal_help(text: str, policy: IstioAuthorizationPolicy, trust_domain: str) -> str:
    if text.startswith(SCHEME):
        return f"write {text.removeprefix(SCHEME)}, without {SCHEME}"
    if text.startswith(_KUBERNETES_USER):
        namespace, _, name = text.removeprefix(_KUBERNETES_USER).partition(":")
    else:
        parts = [part for part in text.split("/") if part not in ("", "ns", "sa", trust_domain)]
        namespace, name = parts[-2:] if len(parts) > 1 else (policy.namespace, "".join(parts))
    return f"write {trust_domain}/ns/{namespace or '<namespace>'}/sa/{name or '<name>'}"


def _other(policy: IstioAuthorizationPolicy, name: str, value: WrittenValue) -> Iterator[Finding]:
    problem = _PROBLEMS[name](value.text) if name in _PROBLEMS else None
    if problem is not None:
        why, help_ = problem
        message = f"`{value.text}` of `{name}` matches no request: {why}"
        yield Finding(codes.NO_SUCH_REQUEST, message, value.span, help_, (str(policy.ref),))


def _method_problem(text: str) -> tuple[str, str] | None:
    plain = text.strip("*")
    if not plain or plain in _METHODS:
        return None
    if "/" in plain:
        return "a method of gRPC is a path, and its HTTP method is POST", f"write paths: [{text}]"
    known = _METHODS if "*" not in text else tuple(method[:size] for method in _METHODS for size in range(1, 8))
    if plain != plain.upper() and plain.upper() in known:
        return "HTTP methods are in capitals", f"write {text.upper()}"
    near = mistyped(plain.upper(), _METHODS) if "*" not in text else None
    return ("HTTP has no such method", f"did you mean {near}?") if near else None


def _path_problem(text: str) -> tuple[str, str] | None:
    if "://" in text:
        _, _, rest = text.partition("://")
        return "a path has no scheme and no host", f"write /{rest.partition('/')[2]}, and the host in `hosts`"
    for mark, part in (("?", "query"), ("#", "fragment")):
        if mark in text:
            return f"Istio compares paths without their {part}", f"write {text.partition(mark)[0] or '/'}"
    if not text.startswith(("/", "*")):
        return "a path begins with /", f"write /{text}"
    return None


def _request_principal_problem(text: str) -> tuple[str, str] | None:
    issuer, _, subject = text.rpartition("/")  # as Istio does, even where that cuts `https://`
    if not issuer.endswith(":/") and ("*" in text or (issuer and subject)):
        return None
    plain = text.rstrip("*")
    help_ = "write the whole issuer and /*" if plain.endswith("://") else f"write {plain}/*"
    return "a principal of a token is an issuer, a slash and a subject", help_


def _host_problem(text: str) -> tuple[str, str] | None:
    host = text.partition("://")[2] or text
    if "/" not in text:
        return None
    return "a host has no scheme and no path", f"write {host.partition('/')[0] or '<host>'}"


def _namespace_problem(text: str) -> tuple[str, str] | None:
    if "/" not in text or "*" in text:
        return None
    return "the name of a namespace has no /", f"write serviceAccounts: [{text}], or the namespace alone"


_PROBLEMS: Final = {
    "methods": _method_problem,
    "paths": _path_problem,
    "hosts": _host_problem,
    "namespaces": _namespace_problem,
    "source.namespace": _namespace_problem,
    "request.headers[:method]": _method_problem,
    "requestPrincipals": _request_principal_problem,
    "request.auth.principal": _request_principal_problem,
}
