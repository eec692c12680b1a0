"""The requirements of a policy on a token."""

from __future__ import annotations

import math

from eastgate.basics.records import dataclass
from eastgate.reading.jwt.algorithms import ASYMMETRIC, KNOWN


@dataclass(frozen=True, slots=True)
class Expectations:
    """The issuer and the audience of the token, and how its signature and times are judged.

    `leeway` is zero unless a policy says otherwise: the issuer's clock and ours are assumed to agree. A token ends at
    the second it says, whatever the leeway is: nobody gets extra seconds for a stolen one.
    """

    issuer: str | None
    """Exactly the `iss` claim; None leaves it unchecked."""
    audiences: frozenset[str] = frozenset()
    """ANY of these must be in the `aud` claim; empty leaves it unchecked."""
    algorithms: tuple[str, ...] = ASYMMETRIC
    leeway: float = 0
    """Seconds by which `nbf` and `iat` may be ahead."""
    max_bytes: int = 16 * 1024
    """The longest token that is looked at. Proxies cut headers off well before that."""
    require_expiry: bool = True
    """A token without `exp` is good for ever, so having one is asked for unless a policy waives it."""

    def __post_init__(self) -> None:
        if self.issuer == "":
            raise ValueError("issuer is empty; to leave the issuer unchecked, give None")
        if not isinstance(self.audiences, frozenset):  # a string would count as the set of its letters
            raise ValueError("audiences must be a frozenset of strings")
        if not isinstance(self.algorithms, tuple):
            raise ValueError("algorithms must be a tuple of names")
        if not self.algorithms:
            raise ValueError("algorithms is empty, so no token could ever be accepted")
        if unknown := sorted(set(self.algorithms) - KNOWN):
            raise ValueError(f"{', '.join(unknown)}: not a signature algorithm; known are {', '.join(sorted(KNOWN))}")
        if not (math.isfinite(self.leeway) and self.leeway >= 0):
            raise ValueError("leeway must be zero or more seconds")
        if self.max_bytes <= 0:
            raise ValueError("max_bytes must be more than zero")
