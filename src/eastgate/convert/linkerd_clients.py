"""Linkerd's clients as callers of GEP-3779, as far as they can be named."""

from __future__ import annotations

from eastgate.basics.records import dataclass
from eastgate.cluster import dns_label_problem, dns_subdomain_problem
from eastgate.convert.gep_reading import Account, NamedCaller, SpiffeIdentity, WholeNamespace
from eastgate.ir import ALWAYS, And, Is, OneOf, Or, Predicate, Suffix
from eastgate.ir.attributes import MESH_NAME
from eastgate.ir.symbolic.names import MeshNames
from eastgate.settings import Settings


@dataclass(frozen=True, slots=True)
class Clients:
    """The callers; None is anybody. `unsaid` are those that cannot be named, in words."""

    callers: tuple[NamedCaller, ...] | None
    unsaid: str = ""


def callers_of(when: Predicate, settings: Settings) -> Clients:
    """Return the callers of an authorization."""
    if when == ALWAYS:
        return Clients(None)
    callers: list[NamedCaller] = []
    unsaid: list[str] = []
    for part in when.parts if isinstance(when, Or) else (when,):
        clients = _clients_of(part, settings)
        callers += clients.callers or ()
        unsaid += [clients.unsaid] if clients.unsaid else []
    return Clients(tuple(dict.fromkeys(callers)), ", ".join(unsaid))


def _clients_of(part: Predicate, settings: Settings) -> Clients:
    match part:
        case Is(attribute, OneOf(values)) if attribute == MESH_NAME:
            callers_by_name = {str(value): _caller_of(str(value), settings) for value in sorted(values, key=str)}
            unsaid = ", ".join(name for name, caller in callers_by_name.items() if caller is None)
            return Clients(tuple(caller for caller in callers_by_name.values() if caller is not None), unsaid)
        case And((Is(attribute, Suffix(text)), _)) if attribute == MESH_NAME:
            stem = _stem(text.removeprefix("."), settings)
            if stem is not None and dns_label_problem(stem) is None:
                return Clients((WholeNamespace(stem),))
            return Clients((), f"*{text}")
        case _:
            return Clients((), str(part))


def _caller_of(name: str, settings: Settings) -> NamedCaller | None:
    if name.startswith("spiffe://"):
        # A SPIFFE ID of the own trust domain means a service account in GEP-3779, and some other client in Linkerd.
        return None if name.startswith(f"spiffe://{settings.trust_domain}/") else SpiffeIdentity(name)
    stem = _stem(name, settings)
    account, dot, namespace = stem.rpartition(".") if stem is not None else ("", "", "")
    if not dot or dns_label_problem(namespace) is not None or dns_subdomain_problem(account) is not None:
        return None
    return Account(namespace, account)


def _stem(name: str, settings: Settings) -> str | None:
    """Return what stands before the part that all service accounts of the mesh share."""
    tail = MeshNames(settings).tail
    return name.removesuffix(tail) if name.endswith(tail) else None
