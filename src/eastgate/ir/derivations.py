"""Attributes that are worked out of others, where a layer looks at them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from eastgate.ir.attributes import Attribute
from eastgate.ir.authorizers import RawRequest
from eastgate.ir.matchers import Known

__all__ = ["Derivation"]


class Derivation(Protocol):
    """Works out attributes of a request as one layer sees it: the claims of a token that it accepts, for example.

    It is hashable, and two that are equal derive the same. `depends_on` is what its attributes depend on beside the
    request, None where that is nothing: those of two readings mean the same where that is alike.
    """

    @property
    def depends_on(self) -> object: ...

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:
        """Return what is known of the derived attributes; one that is left out is unknown."""
        ...
