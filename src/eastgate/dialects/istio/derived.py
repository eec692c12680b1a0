"""Attributes that Istio's proxies derive from a request: the normalized path, the host in lower case."""

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

# Changes of whole chains and selector cases: for ports with their own modes, and behind waypoints


def rewrite_chain(chain: Chain, change: Callable[[Predicate], Predicate]) -> Chain:
    """Return a chain in which each predicate is changed."""

    def rewrite(rule: Rule) -> Rule:
        return Rule(change(rule.when), rule.origin)

    return replace(chain, stages=tuple(rewrite_stage(stage, rewrite) for stage in chain.stages))


def narrowed(cases: Iterable[SelectorCase], when: Predicate) -> tuple[SelectorCase, ...]:
    """Return cases with an additional condition."""
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
    """Derives the forms in which a proxy of Istio compares paths and hosts. Unknown attributes stay unknown."""

    normalization: PathNormalization
    depends_on: ClassVar[None] = None  # each normalization has its own attributes

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:  # noqa: ARG002
        """Return the normalized path, with and without query, whether it is refused, and the host in lower case."""
        path, authority = values.get(SENT_PATH), values.get(AUTHORITY)
        derived: dict[Attribute, Known] = {REFUSED_PATH: None}  # an unknown path counts as valid
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
    """Derives that plaintext HTTP at a sidecar, from a caller without an identity, has no server name."""

    depends_on: ClassVar[str] = "plaintext"

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:  # noqa: ARG002
        """Return an absent SNI for such a request."""
        is_plain = IDENTITY in values and values[IDENTITY] is None
        return {SNI: None} if is_plain and values.get(APPLICATION) == "http" else {}


@dataclass(frozen=True, slots=True)
class DestinationAddress:
    """Derives the destination address of requests to a workload: its own."""

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
    """Return whether a proxy answers 400, because the path that it normalizes contains a NUL."""
    return normalization is not PathNormalization.NONE and _NUL in path
