"""The attributes that fields and conditions of a rule read, and those that Istio's proxies derive.

Eastgate's proxies compare the canonical forms of paths and hosts. Istio's compare the path as they normalize it, and
the host with its port, in lower case.
"""

from __future__ import annotations

from typing import Final

from eastgate.dialects.istio.claims import AUDIENCE, ISSUER, PRESENTER, SUBJECT, claim_at
from eastgate.dialects.istio.settings import PathNormalization
from eastgate.dialects.istio.values import name_in_brackets
from eastgate.ir.attributes import (
    ADDRESS,
    AUTHORITY,
    DESTINATION_ADDRESS,
    FORWARDED_ADDRESS,
    HOST,
    IDENTITY,
    METHOD,
    PATH,
    PORT,
    SNI,
    TARGET,
    Attribute,
    AttributeKind,
    header,
    normalized_path,
    normalized_target,
)

LOWERED_AUTHORITY: Final = Attribute(AttributeKind.AUTHORITY, "in lower case")

_PSEUDO_HEADERS: Final = {":method": METHOD, ":authority": AUTHORITY, "host": AUTHORITY, ":path": TARGET}
_EXPERIMENTAL: Final = "experimental."


def compared_path(normalization: PathNormalization) -> Attribute:
    """Return the path as a proxy compares it."""
    return normalized_path(normalization)


def compared_target(normalization: PathNormalization) -> Attribute:
    """Return the path with its query as a proxy compares it."""
    return normalized_target(normalization)


_FIELDS: Final[dict[str, tuple[Attribute, ...]]] = {
    "principals": (IDENTITY,),
    "requestPrincipals": (ISSUER, SUBJECT),
    "serviceAccounts": (IDENTITY,),
    "trustDomains": (IDENTITY,),
    "namespaces": (IDENTITY,),
    "remoteIpBlocks": (FORWARDED_ADDRESS,),
    "ipBlocks": (ADDRESS,),
    "hosts": (HOST, LOWERED_AUTHORITY),
    "methods": (METHOD,),
    "paths": (PATH, *map(compared_path, PathNormalization)),
    "ports": (PORT,),
}
_KEYS: Final[dict[str, tuple[Attribute, ...]]] = {
    "source.ip": (ADDRESS,),
    "remote.ip": (FORWARDED_ADDRESS,),
    "source.namespace": (IDENTITY,),
    "source.serviceAccount": (IDENTITY,),
    "source.principal": (IDENTITY,),
    "source.trustDomain": (IDENTITY,),
    "request.auth.principal": (ISSUER, SUBJECT),
    "request.auth.audiences": (AUDIENCE,),
    "request.auth.presenter": (PRESENTER,),
    "destination.ip": (DESTINATION_ADDRESS,),
    "destination.port": (PORT,),
    "connection.sni": (SNI,),
}


def attributes_of_field(field: str) -> tuple[Attribute, ...]:
    """Return the attributes that a list of a source or an operation may read."""
    return _FIELDS[field]


def attributes_of_key(key: str) -> tuple[Attribute, ...]:
    """Return the attributes that a condition may read."""
    if key in _KEYS:
        return _KEYS[key]
    named = header_of_key(key) or claim_of_key(key)
    if named is TARGET:
        return (TARGET, *map(compared_target, PathNormalization))
    return (named if named is not None else metadata_of_key(key),)


def header_of_key(key: str) -> Attribute | None:
    """Return the attribute of `request.headers[name]`, also for a pseudo header, or None for another key."""
    name = name_in_brackets(key, "request.headers")
    return None if name is None else _PSEUDO_HEADERS.get(name.lower()) or header(name)


def claim_of_key(key: str) -> Attribute | None:
    """Return the claim of `request.auth.claims[a][b]`, or None for another key."""
    name = name_in_brackets(key, "request.auth.claims")
    if name is None:
        return None
    path = name.split("][")
    nested = all(part and "[" not in part and "]" not in part for part in path)
    return claim_at(path if nested else [name])


def metadata_of_key(key: str) -> Attribute:
    """Return the attribute that a filter of Envoy adds to a request. It is unknown in every question."""
    return Attribute(AttributeKind.METADATA, key.removeprefix(_EXPERIMENTAL))
