"""The shape of a DecisionTest, field by field. The shape of an Invariant is in `reports/invariants/shapes.py`."""

from __future__ import annotations

from eastgate.cluster.resources import resource
from eastgate.reading.manifests import Node
from eastgate.reading.manifests.shapes import (
    Anything,
    Check,
    Choice,
    Field,
    Flag,
    ListOf,
    MapOf,
    Record,
    Text,
    Whole,
    check,
)
from eastgate.reports.invariants import shapes as invariants
from eastgate.reports.invariants.shapes import some_entry

API_VERSION = "eastgate.dev/v1alpha1"
KIND = "DecisionTest"

_text: Text[None] = Text()
_several: ListOf[None] = ListOf(_text, "a list of values")


def _header_values(node: Node, to: Check[None]) -> None:
    """Check that a header has a value, or a list of all its values."""
    for _, value in node.items():  # noqa: PERF102 - a node has no values()
        check(_several if isinstance(value.value, list) else _text, value, to)


_headers: MapOf[None] = MapOf(Anything(), "a mapping of headers", _header_values)

_case: Record[None] = Record(
    "a case",
    {
        "name": Field(_text),
        "from": Field(Text("a source"), required=True, help="write from: sa:<namespace>/<name>"),
        "to": Field(Text("a destination"), required=True, help="write to: pod:<namespace>/<name>"),
        "port": Field(Whole(1, 65535, what="a port")),
        "http": Field(
            Record(
                "http",
                {
                    "method": Field(_text),
                    "path": Field(_text),
                    "host": Field(_text),
                    "headers": Field(_headers),
                    "protocol": Field(_text),
                },
            )
        ),
        "sni": Field(_text),
        "mcp": Field(Record("mcp", {"method": Field(_text), "tool": Field(_text)})),
        "sourceIP": Field(_text),
        "protocol": Field(Choice(("tcp", "udp", "sctp"))),
        "forwardedFor": Field(_text),
        "plaintext": Field(Flag()),
        "claims": Field(MapOf(Anything(), "a mapping of claims")),
        "noToken": Field(Flag()),
        "expect": Field(Choice(("allow", "deny")), required=True, help="write expect: allow, or expect: deny"),
        "by": Field(Text("Kind/namespace/name, or none")),
        "status": Field(Whole(0, 599, what="an HTTP status, or 0 for a closed connection,")),
        "cites": Field(_text),
    },
)


_READING: dict[str, Field[None]] = {
    "manifests": Field(ListOf(Text("a file or folder"), "a list of files and folders")),
    "environments": Field(ListOf(Text("the name of an environment"), "a list of environments", some_entry)),
    "objects": Field(ListOf(Anything(), "a list of objects")),
    "unread": Field(Choice(("error", "warn", "ignore"))),
    "settings": Field(MapOf(Anything(), "a mapping of settings")),
    "jwks": Field(MapOf(Text("a file"), "a mapping of issuers to files with their keys")),
    "externalAuth": Field(MapOf(Choice(("allow", "deny", "error")), "a mapping of answers")),
}

_DECISION_TEST: Record[None] = resource(
    KIND,
    Record(
        "spec",
        {
            **_READING,
            "cases": Field(ListOf(_case, "a list of cases")),
            "rejects": Field(
                ListOf(
                    Record(
                        "a rejection",
                        {
                            "policy": Field(Text("Kind/namespace/name"), required=True),
                            "code": Field(_text),
                            "cites": Field(_text),
                        },
                    ),
                    "a list of rejections",
                )
            ),
        },
    ),
)

_STATED: Record[None] = Record(
    "spec", {**_READING, **invariants.STATEMENT_FIELDS}, rules=(invariants.exactly_one_statement,)
)

SHAPES: dict[str, Record[None]] = {
    KIND: _DECISION_TEST,
    invariants.KIND: resource(invariants.KIND, _STATED),
    invariants.CLUSTER_KIND: resource(invariants.CLUSTER_KIND, _STATED, cluster_scoped=True),
}
"""The shapes of the documents that `eastgate test` runs."""
