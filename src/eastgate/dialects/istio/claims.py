"""The attributes that hold claims of a token, by their paths: `request.auth.claims[a][b]` is the path (a, b)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.ir import Known, RawRequest
from eastgate.ir.attributes import Attribute, AttributeKind, claim

_SEPARATOR = "]["


def claim_at(path: Sequence[str]) -> Attribute:
    """Return the attribute of a claim: a text, all strings of a list, or absent for any other value."""
    return claim(_SEPARATOR.join(path))


def claim_path(attribute: Attribute) -> tuple[str, ...]:
    """Return the path of a claim."""
    return tuple(attribute.key.split(_SEPARATOR))


def is_claim(attribute: Attribute) -> bool:
    """Return whether an attribute is a claim."""
    return attribute.kind is AttributeKind.CLAIM


ISSUER, SUBJECT, AUDIENCE, PRESENTER = map(claim, ("iss", "sub", "aud", "azp"))


@dataclass(frozen=True, slots=True)
class NoClaims:
    """Derives that requests have no claims, because no policy verifies tokens."""

    claims: frozenset[Attribute]
    depends_on: ClassVar[None] = None

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:  # noqa: ARG002
        """Return every claim as absent."""
        return dict.fromkeys(self.claims)
