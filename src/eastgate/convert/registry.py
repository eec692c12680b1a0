"""The registry of conversions, by source and target kind.

It holds the conversions between two dialects; dialects add their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from eastgate import dialects
from eastgate.basics.records import dataclass
from eastgate.convert import gep_writing, kuadrant_codes
from eastgate.convert.access import to_v0alpha0, to_v1alpha1
from eastgate.convert.authconfig_versions import to_v1, to_v1beta3
from eastgate.convert.authorino import to_authorino
from eastgate.convert.from_authconfigs import to_policies
from eastgate.convert.from_proposal import to_today
from eastgate.convert.gep_reading import Gep, from_gep
from eastgate.convert.istio import write_istio
from eastgate.convert.istio_reading import from_istio
from eastgate.convert.linkerd_reading import from_linkerd
from eastgate.convert.linkerd_writing import write_linkerd
from eastgate.convert.model import Item, Job, without_status
from eastgate.convert.proposal_authconfigs import to_host_configs
from eastgate.convert.to_authconfigs import to_auth_configs
from eastgate.convert.to_proposal import to_proposal
from eastgate.dialects import accesspolicy, gep3779, istio, linkerd
from eastgate.dialects.accesspolicy.validation import NETWORKING_GROUP, PROTOTYPE_GROUP
from eastgate.dialects.base import Dialect
from eastgate.dialects.converting import Converter
from eastgate.dialects.kuadrant import authconfigs, policies, proposal

Convert = Callable[[Sequence[Item], Job], None]


@dataclass(frozen=True, slots=True)
class TargetKind:
    """A kind to convert to: the dialects that it can be converted from, and its own documents."""

    ways: tuple[tuple[type, Convert], ...]
    own: tuple[tuple[str, str, str], ...] = ()

    def is_own(self, item: Item) -> bool:
        """Return whether a policy has the target kind already."""
        document = item.document
        return (document.group, document.version, document.kind) in self.own


def pass_on(items: Sequence[Item], job: Job) -> None:
    """Pass on policies that have the target form already."""
    for item in items:
        job.write(item.document, without_status(item.document))


_AUTHORIZATION, _ACCESS = "AuthorizationPolicy", ("XAccessPolicy", "AccessPolicy")


def _to_gep(write: Callable[[Gep, Job], None], version: str, kind: str) -> TargetKind:
    ways: tuple[tuple[type, Convert], ...] = (
        (gep3779.Policy, lambda items, job: from_gep(items, job, write)),
        (linkerd.Policy, lambda items, job: from_linkerd(items, job, write)),
        (istio.Policy, lambda items, job: from_istio(items, job, write, can_deny=kind == _AUTHORIZATION)),
    )
    return TargetKind(ways, ((gep3779.GROUP, version, kind),))


def _together(
    read: Callable[[Sequence[Item], Job, Callable[[Gep, Job], None]], None], write: Callable[[Sequence[Gep], Job], None]
) -> Convert:
    """Return a conversion that reads all policies before it writes the first one."""

    def convert(items: Sequence[Item], job: Job) -> None:
        geps: list[Gep] = []
        read(items, job, lambda gep, _: geps.append(gep))
        write(geps, job)

    return convert


def _keep_identities(items: Sequence[Item], job: Job) -> None:
    for item in items:
        message = f"an AuthPolicy cannot express identities in the mesh: {item.policy.ref} is not converted"
        way_out = "if callers send tokens or keys, write an AuthPolicy with these"
        job.keep(item.document, kuadrant_codes.MESH_IDENTITIES, message, item.document.locate("kind"), help=way_out)


def _kinds_of(dialect: Dialect[Any]) -> tuple[tuple[str, str, str], ...]:
    return tuple((kind.group, kind.version, kind.kind) for kind in dialect.kinds)


# Every kind to convert to, in the order of the command's help.
KINDS: dict[str, TargetKind] = {
    "authorizationpolicy-v1alpha1": _to_gep(gep_writing.v1alpha1, "v1alpha1", _AUTHORIZATION),
    "authorizationpolicy-v1alpha2": _to_gep(gep_writing.v1alpha2, "v1alpha2", _AUTHORIZATION),
    "xauthorizationpolicy": _to_gep(gep_writing.x_v1alpha1, "v1alpha1", "XAuthorizationPolicy"),
    "istio": TargetKind(
        (
            (gep3779.Policy, _together(from_gep, write_istio)),
            (linkerd.Policy, _together(from_linkerd, write_istio)),
            (proposal.Policy, to_authorino),
        ),
        _kinds_of(istio.DIALECT),
    ),
    "linkerd": TargetKind(
        (
            (gep3779.Policy, _together(from_gep, write_linkerd)),
            (istio.Policy, _together(partial(from_istio, can_deny=False), write_linkerd)),
        ),
        _kinds_of(linkerd.DIALECT),
    ),
    "authpolicy-v1": TargetKind(
        (
            (policies.Policy, to_v1),
            (proposal.Policy, to_today),
            (authconfigs.Policy, to_policies),
            (gep3779.Policy, _keep_identities),
            (accesspolicy.Policy, _keep_identities),
        ),
        ((policies.GROUP, "v1", "AuthPolicy"),),
    ),
    "authpolicy-v1alpha1": TargetKind(((policies.Policy, to_proposal),), _kinds_of(proposal.DIALECT)),
    "authconfig-v1beta3": TargetKind(
        (
            (authconfigs.Policy, to_v1beta3),
            (policies.Policy, to_auth_configs),
            (proposal.Policy, to_host_configs),
        ),
        ((authconfigs.GROUP, "v1beta3", "AuthConfig"),),
    ),
    "accesspolicy-v0alpha0": TargetKind(
        ((accesspolicy.Policy, to_v0alpha0),),
        tuple((group, "v0alpha0", kind) for group in (PROTOTYPE_GROUP, NETWORKING_GROUP) for kind in _ACCESS),
    ),
    "accesspolicy-v1alpha1": TargetKind(
        ((accesspolicy.Policy, to_v1alpha1),), tuple((NETWORKING_GROUP, "v1alpha1", kind) for kind in _ACCESS)
    ),
}


def converters_to(name: str) -> list[tuple[type, Convert]]:
    """Return the converters to a kind by the type of policy, from this registry and from the dialects."""
    brought = (
        (dialect.model, _brought(dialect.conversions[name]))
        for dialect in dialects.DIALECTS
        if name in dialect.conversions
    )
    return [*KINDS[name].ways, *brought]


def _brought(converter: Converter[Any]) -> Convert:
    return lambda items, job: converter([(item.policy, item.document) for item in items], job)
