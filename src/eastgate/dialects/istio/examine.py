"""What can be said about policies only where the MeshConfig is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.cluster import World
from eastgate.diagnostics import Diagnostic
from eastgate.dialects.istio import codes
from eastgate.dialects.istio.mesh_config import config_map_of, mesh_problems, written_root
from eastgate.dialects.istio.model import IstioPolicy
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.settings import Settings

__all__ = ["examine"]


def examine(
    policies: Sequence[IstioPolicy], settings: Settings, world: World
) -> Iterator[tuple[IstioPolicy | None, Diagnostic]]:
    """Yield what is wrong with the MeshConfig that policies depend on."""
    config_map = config_map_of(settings, world) if policies else None
    if config_map is None:
        return
    if problems := mesh_problems(config_map):
        message = f"the MeshConfig of ConfigMap {config_map.key} cannot be read: {'; '.join(problems)}"
        yield None, Diagnostic(codes.MESH_CONFIG, message, config_map.span, "correct it")
    root, ours = written_root(config_map), settings.section(IstioSettings).root_namespace
    if root is not None and root != ours:
        message = f"the MeshConfig names the root namespace {root}, and policies were read with {ours}"
        yield None, Diagnostic(codes.OTHER_ROOT, message, config_map.span, f"set rootNamespace: {root}")
