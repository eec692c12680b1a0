"""What can be said about policies only where the MeshConfig is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.cluster import World
from eastgate.diagnostics import Diagnostic
from eastgate.dialects.istio import codes
from eastgate.dialects.istio.mesh_config import (
    config_maps_of,
    mesh_problems,
    mesh_settings,
    says_otherwise,
    written_root,
)
from eastgate.dialects.istio.model import IstioPolicy
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.settings import Settings

__all__ = ["examine"]


def examine(
    policies: Sequence[IstioPolicy], settings: Settings, world: World
) -> Iterator[tuple[IstioPolicy | None, Diagnostic]]:
    """Yield what is wrong with the MeshConfig that policies depend on."""
    config_maps = config_maps_of(settings, world) if policies else []
    if not config_maps:
        return
    config_map, *others = config_maps
    for other in others:
        if mesh_problems(other) or says_otherwise(other, settings, world):
            message = f"the MeshConfig of ConfigMap {other.key} is another than that of {config_map.key}"
            way_out = "give that of the revision which you ask about, and leave the others out (--exclude)"
            yield None, Diagnostic(codes.OTHER_MESH, message, other.span, way_out)
    if problems := mesh_problems(config_map):
        message = f"the MeshConfig of ConfigMap {config_map.key} cannot be read: {'; '.join(problems)}"
        yield None, Diagnostic(codes.MESH_CONFIG, message, config_map.span, "correct it")
    root, ours = written_root(config_map), settings.section(IstioSettings).root_namespace
    if root is not None and root != ours:
        message = f"the MeshConfig names the root namespace {root}, and policies were read with {ours}"
        yield None, Diagnostic(codes.OTHER_MESH, message, config_map.span, f"set rootNamespace: {root}")
    domain = mesh_settings(settings, world).trust_domain
    if domain != settings.trust_domain:  # accounts would have identities that no policy means
        message = f"the MeshConfig names the trust domain {domain}, and callers are of {settings.trust_domain}"
        yield None, Diagnostic(codes.OTHER_MESH, message, config_map.span, f"set trustDomain: {domain}")
