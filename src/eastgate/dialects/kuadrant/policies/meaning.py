"""Converts checked documents to AuthPolicies."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.cluster import moment
from eastgate.cluster.resources import is_audit
from eastgate.cluster.targets import RulesOfGateway, RulesOfRoute
from eastgate.dialects.kuadrant.policies.model import Block, Policy, RuleKey, Strategy
from eastgate.dialects.kuadrant.schemes import SchemeSection
from eastgate.ir import PolicyRef
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.settings import Settings

_BY_NAME = (
    SchemeSection.AUTHENTICATION,
    SchemeSection.METADATA,
    SchemeSection.AUTHORIZATION,
    SchemeSection.HEADERS,
    SchemeSection.DYNAMIC_METADATA,
    SchemeSection.CALLBACKS,
)
_ALONE = (SchemeSection.UNAUTHENTICATED, SchemeSection.UNAUTHORIZED)


def auth_policy(document: Document, root: Node, _settings: Settings) -> Policy:
    """Read an AuthPolicy."""
    spec = root["spec"]
    written = next((block for block in Block if block in spec), None)
    proper = spec if written is None else spec[written]
    strategy = proper.get("strategy") if written is not None else None
    return Policy(
        ref=PolicyRef(document.kind, document.home, document.name, document.group),
        span=document.span,
        name_span=root["metadata"]["name"].span,
        target=_target(spec["targetRef"], document.home),
        target_span=(spec["targetRef"].get("sectionName") or spec["targetRef"]["name"]).span,
        written=written,
        strategy=Strategy(strategy.text) if strategy is not None else Strategy.ATOMIC,
        rules=dict(_rules(proper)),
        created=_moment(root["metadata"], "creationTimestamp"),
        audit=is_audit(root),
        deleted=_moment(root["metadata"], "deletionTimestamp") is not None,
    )


def _moment(metadata: Node, name: str) -> str | None:
    """Return a time of an object; None if it has none or null."""
    time = metadata.get(name)
    return moment(time.value) if time is not None else None


def _target(ref: Node, namespace: str) -> RulesOfGateway | RulesOfRoute:
    section = ref.get("sectionName")
    part = section.text if section is not None else None
    if ref["kind"].text == "Gateway":
        return RulesOfGateway(namespace, ref["name"].text, part)
    return RulesOfRoute(namespace, ref["name"].text, ref["kind"].text, part)


def _rules(proper: Node) -> Iterator[tuple[RuleKey, Node]]:
    """Yield the rules of a block, each with its key. All conditions together are one rule, if there are any."""
    patterns = proper.get("patterns")
    for name, node in patterns.items() if patterns is not None else ():
        yield RuleKey(SchemeSection.PATTERNS, name), node
    when = proper.get("when")
    if when is not None and list(when):
        yield RuleKey(SchemeSection.CONDITIONS, ""), when
    rules = proper.get("rules")
    if rules is None:
        return
    for section in _BY_NAME:
        entries = _at(rules, section.path("filters"))
        for name, node in entries.items() if entries is not None else ():
            yield RuleKey(section, name), node
    for section in _ALONE:
        single = _at(rules, section.path("filters"))
        if single is not None:
            yield RuleKey(section, ""), single


def _at(node: Node, path: tuple[str, ...]) -> Node | None:
    found: Node | None = node
    for step in path:
        found = found.get(step) if found is not None else None
    return found
