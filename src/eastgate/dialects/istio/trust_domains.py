"""Trust domain aliases: a principal of one trust domain of the mesh means that of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_POINTER: Final = "cluster.local"  # stands for the trust domains of the mesh, whatever they are
_SEGMENTS: Final = 5  # of <trust domain>/ns/<namespace>/sa/<name>


def replace_trust_domains(principals: Iterable[str], bundle: Sequence[str]) -> list[str]:
    """Return the principals that these stand for, with the trust domain of the mesh and its aliases."""
    return [each for principal in principals for each in _replaced(principal, bundle)]


def _replaced(principal: str, bundle: Sequence[str]) -> Iterator[str]:
    domain, _, rest = principal.partition("/")
    is_enforced = principal.count("/") == _SEGMENTS - 1 and domain != "*"
    if not is_enforced or not (domain == _POINTER or any(_fits(each, domain) for each in bundle)):
        yield principal
        return
    yield from dict.fromkeys(principal if _is_suffix(each, domain) else f"{each}/{rest}" for each in bundle)


def _fits(domain: str, pattern: str) -> bool:
    return domain == pattern or pattern == "*" or _is_suffix(domain, pattern) or _is_prefix(domain, pattern)


def _is_suffix(domain: str, pattern: str) -> bool:
    return pattern.startswith("*") and domain.endswith(pattern[1:])


def _is_prefix(domain: str, pattern: str) -> bool:
    return pattern.endswith("*") and domain.startswith(pattern[:-1])


def expand_trust_domains(domains: Iterable[str], bundle: Sequence[str]) -> list[str]:
    """Return trust domains, with all of the mesh for each that is one of them."""
    return list(dict.fromkeys(each for domain in domains for each in (bundle if domain in bundle else (domain,))))
