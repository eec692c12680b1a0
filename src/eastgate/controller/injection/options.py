"""The options of injected sidecars, for a whole cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from eastgate._version import __version__
from eastgate.basics.records import dataclass
from eastgate.controller.injection.names import AUDIENCE
from eastgate.envoy.config.bootstrap import ControlPlane, ProxyFiles


class InjectionRefused(Exception):  # noqa: N818 - a verdict for the creator of the pod
    """The pod cannot have a sidecar, and must not run without one."""


@dataclass(frozen=True, slots=True)
class InjectionOptions:
    """The images, resources and addresses of sidecars. `audience` and `token_seconds` are those of their token."""

    proxy_image: str = f"eastgate:{__version__}"
    control_plane: ControlPlane = field(default_factory=ControlPlane)
    files: ProxyFiles = field(default_factory=ProxyFiles)
    audience: str = AUDIENCE
    token_seconds: int = 3600
    concurrency: int = 2
    requests: Mapping[str, str] = field(default_factory=lambda: {"cpu": "10m", "memory": "64Mi"}, hash=False)
    limits: Mapping[str, str] = field(default_factory=lambda: {"memory": "1Gi"}, hash=False)
