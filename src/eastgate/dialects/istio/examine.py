"""Diagnostics that need the MeshConfig, or the proxies of pods."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from eastgate.basics.diagnostics import Diagnostic
from eastgate.cluster import World
from eastgate.dialects.istio import codes
from eastgate.dialects.istio.lint_codes import NO_PROXY
from eastgate.dialects.istio.mesh_config import contradicts, mesh_settings, mesh_sources
from eastgate.dialects.istio.model import IstioPolicy
from eastgate.dialects.istio.planes import ALLOW_PROXY_HELP, ServingPlane, plane_of, refusal_of
from eastgate.dialects.istio.settings import IstioDataPlane, IstioSettings
from eastgate.settings import DataPlane, Settings


def examine(
    policies: Collection[IstioPolicy], settings: Settings, world: World
) -> Iterator[tuple[IstioPolicy | None, Diagnostic]]:
    """Yield the errors in the MeshConfig that policies depend on."""
    sources = mesh_sources(settings, world) if policies else []
    if not sources:
        return
    source, *others = sources
    for other in others:
        if contradicts(other, sources, settings, world):
            first = source.name if other.kind == source.kind else str(source)
            message = f"the MeshConfig of {other} is another than that of {first}"
            way_out = "give only the MeshConfig of the revision in question, and exclude the others (--exclude)"
            yield None, Diagnostic(codes.OTHER_MESH, message, other.span, way_out)
    if problems := source.written.problems:
        message = f"the MeshConfig of {source} cannot be read: {'; '.join(problems)}"
        yield None, Diagnostic(codes.MESH_CONFIG, message, source.span, "correct it")
    root, ours = source.written.root_namespace, settings.section(IstioSettings).root_namespace
    if root is not None and root != ours:
        message = f"the MeshConfig names the root namespace {root}, but policies were read with {ours}"
        yield None, Diagnostic(codes.OTHER_MESH, message, source.span, f"set rootNamespace: {root}")
    domain = mesh_settings(settings, world).trust_domain
    if domain != settings.trust_domain:  # accounts would have identities that no policy names
        message = f"the MeshConfig names the trust domain {domain}, but callers are of {settings.trust_domain}"
        yield None, Diagnostic(codes.OTHER_MESH, message, source.span, f"set trustDomain: {domain}")


_HELP = (
    "label the namespace istio-injection: enabled, or istio.io/dataplane-mode: ambient; or set it for all pods: "
    "--set istioDataPlane=sidecar|ambient|none"
)


def notices(
    policies: Sequence[IstioPolicy], settings: Settings, world: World, workloads: Collection[str] | None
) -> Iterator[Diagnostic]:
    """Yield one warning about all policies that select pods without a proxy, among these workloads or all."""
    is_auto = settings.section(IstioSettings).istio_data_plane is IstioDataPlane.AUTO
    if settings.data_plane is not DataPlane.NATIVE or not is_auto:
        return
    bare = {policy: keys for policy in policies if (keys := _unserved(policy, settings, world, workloads))}
    if not bare:
        return
    from eastgate.dialects.linting import locating  # imported here because most folders have no such policy
    from eastgate.dialects.linting.context import enumerated

    first = min(bare, key=lambda policy: str(policy.ref))
    pods = sorted(set().union(*bare.values()))
    names = sorted(str(policy.ref) for policy in bare)
    its, verb = ("its", "has") if len(pods) == 1 else ("their", "have")
    refusals = {refusal_of(world.workloads[key], world, its) for key in pods}
    refusal = next(iter(refusals)) if len(refusals) == 1 else None
    why = f", which {verb} no proxy of Istio" if refusal is None else f": {refusal}"
    message = f"nothing enforces {enumerated(names)} on {enumerated(pods)}{why}"
    help_ = _HELP if refusal is None else ALLOW_PROXY_HELP
    yield Diagnostic(NO_PROXY, message, locating.at(first.span, "spec", "selector"), help_)


def _unserved(
    policy: IstioPolicy, settings: Settings, world: World, workloads: Collection[str] | None
) -> frozenset[str]:
    """Return the workloads that a policy selects and no proxy serves. Policies for the whole mesh are left out."""
    if policy.audit or policy.refs or (policy.in_root and not policy.selector.match_labels):
        return frozenset()
    data_plane = settings.section(IstioSettings).istio_data_plane
    selected = frozenset[str]().union(*(world.select(target) for target in policy.targets))
    meant = selected if workloads is None else selected.intersection(workloads)
    return frozenset(key for key in meant if plane_of(world.workloads[key], world, data_plane) is ServingPlane.NONE)
