"""The section `authorization`: the checks that must ALL agree."""

from __future__ import annotations

from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.conditions import RULES
from eastgate.dialects.kuadrant.schemes.entries import entry, section
from eastgate.dialects.kuadrant.schemes.expressions import rego_module
from eastgate.dialects.kuadrant.schemes.styles import Style
from eastgate.dialects.kuadrant.schemes.validation import Checking, needs, record
from eastgate.dialects.kuadrant.schemes.values import TIMEOUT, value
from eastgate.manifests.node import Node
from eastgate.manifests.shapes import Choice, Field, Flag, ListOf, Record, Text, quoted
from eastgate.settings import Settings

__all__ = ["ATTRIBUTES", "authorizations"]

ATTRIBUTES = ("namespace", "group", "resource", "subresource", "name", "verb")


def _patterns(style: Style) -> Field[Settings]:
    what, mine, other = (
        ("json", "rules", "patterns") if style is Style.OLD else ("patternMatching", "patterns", "rules")
    )
    return Field(
        record(
            what,
            {mine: Field(RULES)},
            needs(codes.CONDITION, what, mine, "[{selector: .., operator: .., value: ..}]", other),
            renamed={other: f"write {mine}: [..]"},
        ),
        help=f"write {what}: {{{mine}: [..]}}",
    )


def _opa(style: Style) -> Field[Settings]:
    mine, other = ("inlineRego", "rego") if style is Style.OLD else ("rego", "inlineRego")
    elsewhere = style.pick("externalRegistry", "externalPolicy")
    return Field(
        record(
            "opa",
            {
                mine: Field(Text("a Rego policy")),
                "allValues": Field(Flag()),
                "version": Field(Choice(("v0", "v1"))),
            },
            needs(codes.REGO, "opa", mine, "<a Rego policy>", other, elsewhere),
            rego_module(mine),
            unsupported=(elsewhere,),
            renamed={other: f"write {mine}: .."},
            misspelt={"regoVersion": "version"},
        ),
        help=f"write opa: {{{mine}: ..}}",
    )


def _group(node: Node, to: Checking) -> None:
    if not node.text.strip():
        to.report(codes.SUBJECT, f"{quoted(node.text)} is not a group", node, help="write the name of a group")


def _review(style: Style) -> Field[Settings]:
    what = style.pick("kubernetes", "kubernetesSubjectAccessReview")
    selected = style.pick("{valueFrom: {authJSON: ..}}", "{selector: ..}")

    def subject(node: Node, to: Checking) -> None:
        groups = node.get("groups")
        if groups is not None and groups.value == []:
            way_out = "write the groups, or leave `groups` out"
            to.report(codes.SUBJECT, "there is no group in the list", groups, help=way_out)
        elif "user" not in node and "authorizationGroups" not in node and groups is None:
            message = f"{what} needs `user` or `groups`"
            to.report(codes.SUBJECT, message, node, help=f"write user: {selected}")

    attributes: Record[Settings] = record(
        "resourceAttributes",
        {name: Field(value(style, name), help=f"write {name}: {{value: ..}}") for name in ATTRIBUTES},
        misspelt={"apiGroup": "group", "kind": "resource", "subResource": "subresource", "verbs": "verb"},
    )
    return Field(
        record(
            what,
            {
                "user": Field(value(style, "user"), help=f"write user: {selected}"),
                "groups": Field(ListOf(Text("a group", _group), "a list of groups")),
                "resourceAttributes": Field(attributes),
                **({} if style is Style.OLD else {"timeout": TIMEOUT}),
            },
            subject,
            unsupported=("authorizationGroups",),
        )
    )


def authorizations(style: Style) -> Field[Settings]:
    """Return the shape of the section."""
    if style is Style.OLD:
        methods = {"json": _patterns(style), "opa": _opa(style), "kubernetes": _review(style)}
        renamed = {
            "patternMatching": "write json: {rules: [..]}",
            "kubernetesSubjectAccessReview": "write kubernetes: {user: {..}}",
        }
    else:
        methods = {
            "patternMatching": _patterns(style),
            "opa": _opa(style),
            "kubernetesSubjectAccessReview": _review(style),
        }
        renamed = {
            "json": "write patternMatching: {patterns: [..]}",
            "kubernetes": "write kubernetesSubjectAccessReview: {user: {..}}",
        }
    item = entry(style, "an authorization", methods, unsupported=("authzed", "spicedb"), renamed=renamed)
    return section(style, "authorizations", item)
