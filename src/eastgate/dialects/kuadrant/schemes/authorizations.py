"""The section `authorization`: checks that must ALL allow."""

from __future__ import annotations

from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.conditions import ANY_RULES, RULES
from eastgate.dialects.kuadrant.schemes.credentials import credentials
from eastgate.dialects.kuadrant.schemes.entries import entry, section
from eastgate.dialects.kuadrant.schemes.metadata import FORM, secret_reference
from eastgate.dialects.kuadrant.schemes.styles import Style
from eastgate.dialects.kuadrant.schemes.validation import Checking, exactly_one, needs, record
from eastgate.dialects.kuadrant.schemes.values import MAX_TTL_SECONDS, TIMEOUT, URL, rego_module, value
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Choice, Field, Flag, ListOf, Record, Text, Whole, quoted
from eastgate.settings import Settings

ATTRIBUTES = ("namespace", "group", "resource", "subresource", "name", "verb")


def _patterns(style: Style, complete: bool) -> Field[Settings]:
    what, mine, other = (
        ("json", "rules", "patterns") if style is Style.OLD else ("patternMatching", "patterns", "rules")
    )
    return Field(
        record(
            what,
            {mine: Field(ANY_RULES if complete else RULES)},
            needs(codes.CONDITION, what, mine, "[{selector: .., operator: .., value: ..}]", other),
            renamed={other: f"write {mine}: [..]"},
        ),
        help=f"write {what}: {{{mine}: [..]}}",
    )


def _opa(style: Style, complete: bool) -> Field[Settings]:
    mine, other = ("inlineRego", "rego") if style is Style.OLD else ("rego", "inlineRego")
    elsewhere = style.pick("externalRegistry", "externalPolicy")
    fetched = {elsewhere: Field(_external_policy(style, elsewhere))} if complete else {}
    demand = (
        exactly_one(codes.REGO, "opa", (mine, elsewhere), (other,))
        if complete
        else needs(codes.REGO, "opa", mine, "<a Rego policy>", other, elsewhere)
    )
    return Field(
        record(
            "opa",
            {
                mine: Field(Text("a Rego policy")),
                "allValues": Field(Flag()),
                "version": Field(Choice(("v0", "v1"))),
                **fetched,
            },
            demand,
            rego_module(mine),
            unsupported=() if complete else (elsewhere,),
            renamed={other: f"write {mine}: .."},
            misspelt={"regoVersion": "version"},
        ),
        help=f"write opa: {{{mine}: ..}}",
    )


def _external_policy(style: Style, what: str) -> Record[Settings]:
    """Return the shape of a Rego policy at a URL. The other fields of an HTTP request have no effect there."""
    mine, other = ("endpoint", "url") if style is Style.OLD else ("url", "endpoint")
    defaults: dict[str, Field[Settings]] = {"method": Field(Choice(("GET",))), "contentType": Field(Choice((FORM,)))}
    return record(
        what,
        {
            mine: Field(URL, required=True, help=f"write {mine}: <a URL>"),
            "sharedSecretRef": Field(secret_reference("sharedSecretRef")),
            "credentials": Field(credentials(style)),
            "ttl": Field(Whole(0, MAX_TTL_SECONDS, codes.TTL, "a number of seconds")),
            **({} if style is Style.OLD else {**defaults, "timeout": TIMEOUT}),
        },
        renamed={other: f"write {mine}: .."},
    )


# SpiceDB


def _endpoint(node: Node, to: Checking) -> None:
    host, _, port = node.text.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        message = f"{quoted(node.text)} is not a host with a port"
        to.report(codes.URL, message, node, help="write the host and the port of its gRPC API: spicedb:50051")


def _spicedb(style: Style) -> Field[Settings]:
    def named_object(what: str) -> Field[Settings]:
        parts = {
            name: Field(value(style, name, may_lack=True), help=f"write {name}: {{..}}") for name in ("name", "kind")
        }
        return Field(record(what, parts), help=f"write {what}: {{name: {{..}}, kind: {{..}}}}")

    return Field(
        record(
            style.pick("authzed", "spicedb"),
            {
                "endpoint": Field(Text("a host with a port", _endpoint), required=True, help="write endpoint: .."),
                "insecure": Field(Flag()),
                "sharedSecretRef": Field(secret_reference("sharedSecretRef")),
                "subject": named_object("subject"),
                "resource": named_object("resource"),
                "permission": Field(value(style, "permission", may_lack=True), help="write permission: {..}"),
            },
        )
    )


def _group(node: Node, to: Checking) -> None:
    if not node.text.strip():
        to.report(codes.SUBJECT, f"{quoted(node.text)} is not a group", node, help="write the name of a group")


def _review(style: Style, complete: bool) -> Field[Settings]:
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

    groups_selected = complete and style is Style.NEW
    attributes: Record[Settings] = record(
        "resourceAttributes",
        {
            name: Field(value(style, name, may_lack=groups_selected), help=f"write {name}: {{value: ..}}")
            for name in ATTRIBUTES
        },
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
                **({"authorizationGroups": Field(value(style, "authorizationGroups"))} if groups_selected else {}),
            },
            subject,
            unsupported=() if complete else ("authorizationGroups",),
        )
    )


def authorizations(style: Style, *, complete: bool = False) -> Field[Settings]:
    """Return the shape of the section. `complete`: with all features of Authorino, which the kind of 2022 lacks."""
    patterns, opa, review = _patterns(style, complete), _opa(style, complete), _review(style, complete)
    if style is Style.OLD:
        methods = {"json": patterns, "opa": opa, "kubernetes": review}
        renamed = {
            "patternMatching": "write json: {rules: [..]}",
            "kubernetesSubjectAccessReview": "write kubernetes: {user: {..}}",
        }
    else:
        methods = {"patternMatching": patterns, "opa": opa, "kubernetesSubjectAccessReview": review}
        renamed = {
            "json": "write patternMatching: {patterns: [..]}",
            "kubernetes": "write kubernetesSubjectAccessReview: {user: {..}}",
        }
    unsupported: tuple[str, ...] = ("authzed", "spicedb")
    if complete:
        mine, other = style.pick("authzed", "spicedb"), style.pick("spicedb", "authzed")
        methods[mine] = _spicedb(style)
        renamed[other] = f"write {mine}: {{..}}"
        unsupported = ()
    item = entry(style, "an authorization", methods, unsupported=unsupported, renamed=renamed)
    return section(style, "authorizations", item)
