"""Adds checks where Authorino is more lenient than Eastgate's reading of an AuthPolicy, and reports the differences
that no check closes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from eastgate.basics.diagnostics import Code
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.regexes import regex
from eastgate.convert import kuadrant_codes
from eastgate.convert.gateway_conditions import host_predicate
from eastgate.convert.istio_rules import lose_paths
from eastgate.convert.model import Job, Manifest
from eastgate.dialects.kuadrant.authorino.conditions import erring_guards
from eastgate.dialects.kuadrant.authorino.model import (
    All,
    AnyOf,
    AuthorizationRule,
    CelPredicate,
    Condition,
    Identity,
    Jwt,
    Method,
    Pattern,
    PatternOperator,
    PatternRules,
    Rego,
    Scheme,
)
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.reading.manifests import Plain

_CHECKED = ("iss", "aud")
_MARK = "eastgate_identity"
_CHECK = "eastgate-token-of-"
_HOST_CHECK = "eastgate-hosts"
_FUNCTION = regex(r"^\s*(default\s+)?[A-Za-z_]\w*\(", re.MULTILINE)


def with_token_checks(spec: Manifest, scheme: Scheme) -> Manifest:
    """Return the AuthConfig with an authorization that checks the audiences of each issuer, which Authorino does not
    do.

    If a scheme has several identities, those with a token are marked, so that each token is compared with its own
    issuer.
    """
    checked = {each.name: patterns for each in scheme.identities if (patterns := _patterns(each))}
    if not checked:
        return spec
    authentication, authorization = _object(spec["authentication"]), _object(spec.get("authorization"))
    several = len(scheme.identities) > 1
    for name, patterns in checked.items():
        check: Manifest = {"patternMatching": {"patterns": patterns}}
        if several:
            entry = _object(authentication[name])
            authentication[name] = {**entry, "overrides": {**_object(entry.get("overrides")), _MARK: {"value": name}}}
            check = {"when": [{"selector": f"auth.identity.{_MARK}", "operator": "eq", "value": name}], **check}
        authorization[_unused(f"{_CHECK}{name}", authorization)] = check
    return {**spec, "authentication": authentication, "authorization": authorization}


def with_host_check(spec: Manifest, scheme: Scheme) -> Manifest:
    """Return the AuthConfig with an authorization that denies requests to hosts without this scheme."""
    authorization = _object(spec.get("authorization"))
    check: Manifest = {"patternMatching": {"patterns": [{"predicate": host_predicate(scheme.hosts)}]}}
    authorization[_unused(_HOST_CHECK, authorization)] = check
    return {**spec, "authorization": authorization}


def without_host_check(scheme: Scheme) -> tuple[Scheme, str | None]:
    """Return a scheme without the check that `with_host_check` added, and the predicate of the check, or None."""
    for check in scheme.authorizations:
        if not check.name.startswith(_HOST_CHECK) or check.when is not None or not isinstance(check.rule, PatternRules):
            continue
        match check.rule.condition:
            case All((CelPredicate(text),)):
                rest = tuple(each for each in scheme.authorizations if each is not check)
                return replace(scheme, authorizations=rest), text
    return scheme, None


def _object(value: Plain) -> Manifest:
    return dict(value) if isinstance(value, dict) else {}


def _unused(name: str, taken: Manifest) -> str:
    while name in taken:
        name += "-"
    return name


def _patterns(identity: Identity) -> list[Plain]:
    if not isinstance(identity.method, Jwt):
        return []
    issuer, audiences = identity.method.issuer, sorted(identity.method.audiences)
    patterns: list[Plain] = []
    if issuer is not None:
        patterns.append({"selector": "auth.identity.iss", "operator": "eq", "value": issuer})
    if audiences:
        anyone: list[Plain] = [
            {"selector": "auth.identity.aud", "operator": "incl", "value": audience} for audience in audiences
        ]
        patterns.append({"any": anyone})
    return patterns


def without_token_checks(scheme: Scheme) -> Scheme:
    """Return a scheme in which the checks of `with_token_checks` are issuers and audiences of the identities again."""
    several = len(scheme.identities) > 1
    identities, checks = list(scheme.identities), list(scheme.authorizations)
    for index, identity in enumerate(identities):
        mark = All((Pattern(f"auth.identity.{_MARK}", PatternOperator.EQ, identity.name),)) if several else None
        for check in checks:
            audiences = _audiences(check.rule, identity.method) if check.name.startswith(_CHECK) else None
            if audiences is None or not isinstance(identity.method, Jwt) or not _is_same(check.when, mark):
                continue
            properties = tuple(each for each in identity.properties if each.name != _MARK)
            method = replace(identity.method, audiences=audiences)
            identities[index] = replace(identity, method=method, properties=properties)
            checks.remove(check)
            break
    return replace(scheme, identities=tuple(identities), authorizations=tuple(checks))


def _audiences(rule: AuthorizationRule, method: Method) -> frozenset[str] | None:
    """Return the audiences that a check compares for the issuer of a method, or None for any other check."""
    if not isinstance(rule, PatternRules) or not isinstance(method, Jwt) or method.audiences:
        return None
    match rule.condition:
        case All((Pattern("auth.identity.iss", PatternOperator.EQ, issuer), *rest)) if issuer == method.issuer:
            pass
        case All(tuple(rest)) if method.issuer is None:
            pass
        case _:
            return None
    if not rest:
        return frozenset()
    match rest:
        case [AnyOf(parts)] | (AnyOf(parts),):
            included = [
                part.value
                for part in parts
                if isinstance(part, Pattern)
                and (part.selector, part.operator) == ("auth.identity.aud", PatternOperator.INCL)
            ]
            return frozenset(included) if len(included) == len(parts) else None
    return None


def _is_same(when: Condition | None, mark: All | None) -> bool:
    if when is None or mark is None:
        return when is mark
    (expected,) = mark.parts
    return isinstance(when, All) and len(when.parts) == 1 and _text(when.parts[0]) == _text(expected)


def _text(condition: Condition) -> tuple[str, str, str] | None:
    if not isinstance(condition, Pattern):
        return None
    return condition.selector, condition.operator, condition.value


def lose_what_differs(scheme: Scheme, job: Job) -> None:
    """Report if an AuthConfig is narrower than the scheme, or relies on the path normalization of the mesh."""
    if scheme.looks_at_path and scheme.span is not None:
        lose_paths(job, scheme.span)
    for identity in sorted(scheme.identities, key=lambda each: each.priority)[:-1]:
        if _patterns(identity):
            message = f"a token of another issuer or audience than {identity.name} has is denied"
            way_out = "if several issuers are intended, give each a host of its own"
            job.lose(kuadrant_codes.NEXT_IDENTITY, message, identity.span, help=way_out)
    for each in scheme.authorizations:
        if isinstance(each.rule, Rego) and _FUNCTION.search(each.rule.module):
            message = f"Authorino does not load the Rego of {each.name}, which defines functions"
            job.lose(
                kuadrant_codes.REGO_FUNCTION,
                message,
                each.span,
                help="write the content of the function into the rules",
            )


def reasons_to_keep(scheme: Scheme, job: Job) -> Iterator[tuple[Code, str, Span | None, str]]:
    """Return the reasons why no AuthConfig can be as narrow as the scheme."""
    if not job.settings.section(KuadrantSettings).authorino_compat:
        for condition, why in erring_guards(scheme):
            way_out = "write a pattern instead, or accept it with --set authorinoCompat=true"
            yield (
                kuadrant_codes.ERRING_WHEN,
                f"{why}, and then Authorino skips the guarded part",
                condition.span,
                way_out,
            )
    for metadata in scheme.metadata:
        message = f"Authorino accepts a response of any status as the metadata {metadata.name}"
        yield kuadrant_codes.METADATA_STATUS, message, metadata.span, "convert the policy without it"
    for identity in scheme.identities:
        for each in identity.properties if _patterns(identity) else ():
            if each.name in _CHECKED:
                message = f"the property {each.name} takes the place of the claim that is compared"
                yield kuadrant_codes.CHECKED_CLAIM, message, identity.span, "give the property another name"
