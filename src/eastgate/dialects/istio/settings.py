"""The settings of an Istio installation. A MeshConfig in the manifests overrides settings at their defaults."""

from __future__ import annotations

from enum import StrEnum

from eastgate.basics.records import dataclass
from eastgate.settings import Names, Section

__all__ = ["IstioDataPlane", "IstioSettings", "PathNormalization"]


class IstioDataPlane(StrEnum):
    """The proxies of pods: by labels, or the same for all pods. Gateways are proxies themselves."""

    AUTO = "auto"
    SIDECAR = "sidecar"
    AMBIENT = "ambient"
    NONE = "none"


class PathNormalization(StrEnum):
    """The form in which Istio's proxies compare paths."""

    BASE = "base"
    NONE = "none"
    MERGE_SLASHES = "merge-slashes"
    DECODE_AND_MERGE_SLASHES = "decode-and-merge-slashes"


@dataclass(frozen=True, slots=True)
class IstioSettings(Section):
    """The settings that only Istio reads."""

    root_namespace: str = "istio-system"
    trust_domain_aliases: Names = Names()
    istio_data_plane: IstioDataPlane = IstioDataPlane.AUTO
    path_normalization: PathNormalization = PathNormalization.BASE
