"""From checks to their model."""

from __future__ import annotations

from eastgate.dialects.kuadrant.authorino.model import (
    All,
    Authorization,
    AuthorizationRule,
    FetchedModule,
    PatternRules,
    PermissionCheck,
    Rego,
    SubjectAccess,
    Value,
)
from eastgate.dialects.kuadrant.schemes.authorizations import ATTRIBUTES
from eastgate.dialects.kuadrant.schemes.meaning.fields import (
    cache_of,
    first_of,
    is_set,
    priority_of,
    seconds_of,
    text_of,
)
from eastgate.dialects.kuadrant.schemes.meaning.metadata import read_http, read_secret
from eastgate.dialects.kuadrant.schemes.meaning.values import Patterns, all_of, optional_value, texts, value_of
from eastgate.reading.manifests.node import Node


def read_authorization(name: str, entry: Node, patterns: Patterns) -> Authorization:
    """Read a check."""
    when = all_of(entry.get("when"), patterns)
    return Authorization(name, _rule(entry, patterns), priority_of(entry), when, cache_of(entry), entry.span)


def _rule(entry: Node, patterns: Patterns) -> AuthorizationRule:
    matching = first_of(entry, "json", "patternMatching")
    if matching is not None:
        return PatternRules(all_of(first_of(matching, "rules", "patterns"), patterns) or All())
    opa = entry.get("opa")
    if opa is not None:
        version = 1 if text_of(opa.get("version")) == "v1" else 0
        external = first_of(opa, "externalRegistry", "externalPolicy")
        fetched = FetchedModule(read_http(external), seconds_of(external, "ttl")) if external is not None else None
        return Rego(text_of(first_of(opa, "inlineRego", "rego")), is_set(opa.get("allValues")), version, fetched)
    if (check := first_of(entry, "authzed", "spicedb")) is not None:
        return _permission_check(check)
    review = first_of(entry, "kubernetes", "kubernetesSubjectAccessReview")
    assert review is not None  # noqa: S101 - every entry has a method
    attributes = review.get("resourceAttributes")
    resource = (
        {name: value_of(attributes[name]) for name in ATTRIBUTES if name in attributes and attributes[name].value}
        if attributes is not None
        else None
    )
    user, groups = optional_value(review.get("user")), texts(review.get("groups"))
    return SubjectAccess(user, groups, resource, optional_value(review.get("authorizationGroups")))


def _permission_check(node: Node) -> PermissionCheck:
    subject, resource = node.get("subject"), node.get("resource")
    return PermissionCheck(
        endpoint=node["endpoint"].text,
        subject=_part_of(subject, "name"),
        subject_kind=_part_of(subject, "kind"),
        resource=_part_of(resource, "name"),
        resource_kind=_part_of(resource, "kind"),
        permission=optional_value(node.get("permission")),
        insecure=is_set(node.get("insecure")),
        shared_secret=read_secret(node.get("sharedSecretRef")),
    )


def _part_of(node: Node | None, name: str) -> Value | None:
    return optional_value(node.get(name)) if node is not None else None
