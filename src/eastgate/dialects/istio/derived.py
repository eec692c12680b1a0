"""The attributes that Istio's proxies derive from a request: its path as they normalize it, its host in lower case."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, Final

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.dialects.istio.attributes import LOWERED_AUTHORITY, compared_path, compared_target
from eastgate.dialects.istio.settings import PathNormalization
from eastgate.ir import Chain, Known, Predicate, RawRequest, Rule, SelectorCase, all_of, conjuncts, rewrite_stage
from eastgate.ir.attributes import (
    APPLICATION,
    AUTHORITY,
    DESTINATION_ADDRESS,
    IDENTITY,
    REFUSED_PATH,
    SENT_PATH,
    SNI,
    TARGET,
    Attribute,
)
from eastgate.ir.paths import merge_slashes, normalize_path

# Chains and selector cases, changed as a whole: for ports with modes of their own, and behind waypoints.


def rewrite_chain(chain: Chain, change: Callable[[Predicate], Predicate]) -> Chain:
    """Return a chain whose rules have other predicates."""

    def rewrite(rule: Rule) -> Rule:
        return Rule(change(rule.when), rule.origin)

    return replace(chain, stages=tuple(rewrite_stage(stage, rewrite) for stage in chain.stages))


def narrowed(cases: Iterable[SelectorCase], when: Predicate) -> tuple[SelectorCase, ...]:
    """Return cases that hold only where a predicate does, too."""
    return tuple(replace(case, when=all_of((*conjuncts(when), *conjuncts(case.when)))) for case in cases)


_ENCODED_SLASH = regex("%(2f|5c)", re.IGNORECASE)
_NUL: Final = "%00"


def _decode_slashes(path: str) -> str:
    return _ENCODED_SLASH.sub(lambda match: "/" if match[1].lower() == "2f" else "\\", path)


_NORMALIZED: Final[Mapping[PathNormalization, Callable[[str], str]]] = {
    PathNormalization.NONE: str,
    PathNormalization.BASE: normalize_path,
    PathNormalization.MERGE_SLASHES: lambda path: merge_slashes(normalize_path(path)),
    PathNormalization.DECODE_AND_MERGE_SLASHES: lambda path: merge_slashes(normalize_path(_decode_slashes(path))),
}


@dataclass(frozen=True, slots=True)
class HttpForms:
    """Derives the forms in which a proxy of Istio compares paths and hosts. What is unknown stays unknown."""

    normalization: PathNormalization
    depends_on: ClassVar[None] = None  # the attributes of each normalization are its own

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:  # noqa: ARG002
        """Return the normalized path, with and without query, whether it is refused, and the host in lower case."""
        path, authority = values.get(SENT_PATH), values.get(AUTHORITY)
        derived: dict[Attribute, Known] = {REFUSED_PATH: None}  # a path that nobody knows is a proper one
        if isinstance(path, str):
            derived[compared_path(self.normalization)] = _normalize(path, self.normalization)
            target = values.get(TARGET)
            if isinstance(target, str):
                _, mark, rest = target.partition("?")
                derived[compared_target(self.normalization)] = _normalize(path, self.normalization) + mark + rest
            derived[REFUSED_PATH] = path if _is_refused(path, self.normalization) else None
        if isinstance(authority, str):
            derived[LOWERED_AUTHORITY] = authority.lower()
        return derived


@dataclass(frozen=True, slots=True)
class PlainHttp:
    """Derives that HTTP of a caller without an identity, which came in plaintext to a sidecar, has no name in TLS."""

    depends_on: ClassVar[str] = "plaintext"

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:  # noqa: ARG002
        """Return an absent SNI for such a request."""
        is_plain = IDENTITY in values and values[IDENTITY] is None
        return {SNI: None} if is_plain and values.get(APPLICATION) == "http" else {}


@dataclass(frozen=True, slots=True)
class DestinationAddress:
    """Derives the address that requests to a workload are sent to: its own."""

    address: str

    @property
    def depends_on(self) -> str:
        """Return the address."""
        return self.address

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:  # noqa: ARG002
        """Return the address."""
        return {DESTINATION_ADDRESS: self.address}


@lru_cache(maxsize=4096)
def _normalize(path: str, normalization: PathNormalization) -> str:
    return _NORMALIZED[normalization](path)


def _is_refused(path: str, normalization: PathNormalization) -> bool:
    """Return whether a proxy answers 400: what it normalizes must not have a NUL."""
    return normalization is not PathNormalization.NONE and _NUL in path
