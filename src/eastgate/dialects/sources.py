"""Sources with a `type`, a union that several APIs have: a service account, or a SPIFFE ID."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Cel, Check, Choice, Field, Record, Text

C = TypeVar("C")

TYPE_FITS_MEMBERS: Final = (
    Cel("(self.type == 'SPIFFE') == has(self.spiffe)", "`spiffe` is set where the type is SPIFFE, and only there"),
    Cel(
        "(self.type == 'ServiceAccount') == has(self.serviceAccount)",
        "`serviceAccount` is set where the type is ServiceAccount, and only there",
    ),
)
"""The rules of an API server for a source."""


def members_of(source: Node) -> tuple[str, str]:
    """Return the field that the type of a source requires, and the field that it excludes."""
    return ("spiffe", "serviceAccount") if source["type"].text == "SPIFFE" else ("serviceAccount", "spiffe")


def source_fields(spiffe_id: Callable[[Node, Check[C]], None], account: Record[C]) -> dict[str, Field[C]]:
    """Return the fields of a source. `spiffe_id` checks an identity, `account` is the shape of a service account."""
    return {
        "type": Field(
            Choice(("ServiceAccount", "SPIFFE")),
            required=True,
            help="write type: ServiceAccount, or type: SPIFFE",
            about="Which of the two fields identifies the caller.",
        ),
        "spiffe": Field(
            Text("a SPIFFE ID", spiffe_id),
            about="A full SPIFFE ID, spiffe://<trust domain>/<path>, compared exactly.",
        ),
        "serviceAccount": Field(account, about="A service account of the target's trust domain."),
    }
