"""The fields of a GuestList. Checks, the CustomResourceDefinition and the schema for editors are generated from it."""

from __future__ import annotations

from eastgate.cluster import dns_label_problem
from eastgate.cluster.resources import resource
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Check, Field, ListOf, Record, Text
from eastgate.settings import Settings
from tests.toy import codes

__all__ = ["GUEST_LIST"]


def _guest(node: Node, to: Check[Settings]) -> None:
    if dns_label_problem(node.text) is not None:
        message = f"`{node.text}` is not the name of a service account"
        to.report(codes.GUEST, message, node.span, help="write the name alone, such as web")


GUEST_LIST: Record[Settings] = resource(
    "GuestList",
    Record(
        "spec",
        {
            "app": Field(
                Text("an app"),
                required=True,
                help="write app: <value of the label>",
                about="The app label of the pods.",
            ),
            "guests": Field(
                ListOf(Text("a guest", _guest), "a list of guests", served=64),
                about="The service accounts of the namespace that may call. Without guests, every caller is denied.",
            ),
        },
    ),
    about="The service accounts that may call the pods of an app.",
)
