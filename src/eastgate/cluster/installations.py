"""Installations of Istio: the MeshConfig of an operator or a chart, and the gateways that it creates.

An IstioOperator and an `Istio` of the sail operator hold a MeshConfig. So does istiod's Helm chart, in a HelmRelease of
Flux or an Application of Argo CD. A cluster has the resulting ConfigMap, so that these kinds are read only from files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import field
from typing import Final

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.fields import Data, mapping, mappings, text
from eastgate.cluster.objects import Namespaced, ObjectId
from eastgate.cluster.pods import ContainerPort, Owner, Workload
from eastgate.reading.manifests.roots import read_nodes_text

_OPERATOR, _SAIL = ("install.istio.io", "IstioOperator"), ("sailoperator.io", "Istio")
_FLUX, _ARGO = ("helm.toolkit.fluxcd.io", "HelmRelease"), ("argoproj.io", "Application")
INSTALLATIONS: Final = frozenset({_OPERATOR, _SAIL, _FLUX, _ARGO})
"""The kinds, each with its group, that may install Istio."""

_CHART: Final = "istiod"
_ROOT_NAMESPACE: Final = "istio-system"
_GATEWAYS: Final = (("ingressGateways", "ingressgateway"), ("egressGateways", "egressgateway"))
_PROFILES: Final = {  # the gateways of the default profile
    "default": ("ingressgateway",),
    "openshift": ("ingressgateway",),
    "preview": ("ingressgateway",),
    "stable": ("ingressgateway",),
    "demo": ("ingressgateway", "egressgateway"),
}
_PORTS: Final = (8080, 8443, 15021)
_AS_GATEWAY: Final = {"inject.istio.io/templates": "gateway"}


@dataclass(frozen=True, slots=True)
class MeshInstallation(Namespaced):
    """An installation of Istio. `mesh` is its MeshConfig as JSON; empty if it has none.

    `root_namespace` is that of the control plane, if it is named. `gateways` are the proxies that it creates.
    """

    group: str
    kind: str
    namespace: str
    name: str
    mesh: str = ""
    root_namespace: str | None = None
    gateways: tuple[Workload, ...] = ()
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return the id of the object."""
        return ObjectId(self.group, self.kind, self.namespace, self.name)


def installs_mesh(root: Data) -> bool:
    """Return whether an object of one of `INSTALLATIONS` installs Istio: an object of Helm may be for any chart."""
    return _type(root) in (_OPERATOR, _SAIL) or _helm_values(root) is not None


def read_installation(root: Data, namespace: str, name: str, span: Span | None) -> MeshInstallation:
    """Return an installation."""
    (group, kind), spec = _type(root), mapping(root, "spec")
    values = _helm_values(root) if (group, kind) in (_FLUX, _ARGO) else mapping(spec, "values")
    configuration = values or {}
    mesh = configuration.get("meshConfig")
    if kind == "IstioOperator" and spec.get("meshConfig") is not None:
        own = spec["meshConfig"]
        mesh = {**own, **mesh} if isinstance(mesh, dict) and isinstance(own, dict) else own
    root_namespace = text(mapping(configuration, "global"), "istioNamespace")
    if (group, kind) == _SAIL:
        root_namespace = text(spec, "namespace") or root_namespace
    is_operator = (group, kind) == _OPERATOR
    return MeshInstallation(
        group,
        kind,
        namespace,
        name,
        "" if mesh is None else json.dumps(mesh, sort_keys=True, default=str),
        root_namespace,
        tuple(_gateways(spec, root_namespace or _ROOT_NAMESPACE, span)) if is_operator else (),
        span,
    )


def _type(root: Data) -> tuple[str, str]:
    return (text(root, "apiVersion") or "").partition("/")[0], text(root, "kind") or ""


# Helm


def _helm_values(root: Data) -> Data | None:
    """Return the values of istiod's chart; None for another chart."""
    spec = mapping(root, "spec")
    if _type(root) == _FLUX:
        chart = text(mapping(mapping(spec, "chart"), "spec"), "chart") or text(mapping(spec, "chartRef"), "name")
        return mapping(spec, "values") if _is_istiod(chart) else None
    if _type(root) != _ARGO:
        return None
    sources = (mapping(spec, "source"), *mappings(spec, "sources"))
    return next((_argo_values(source) for source in sources if _is_istiod(text(source, "chart"))), None)


def _is_istiod(chart: str | None) -> bool:
    return chart is not None and chart.rpartition("/")[2] == _CHART


def _argo_values(source: Data) -> Data:
    """Return the values of a source of an Application. Argo CD prefers the object to the text."""
    helm = mapping(source, "helm")
    written = text(helm, "values")
    if isinstance(helm.get("valuesObject"), dict) or written is None:
        return mapping(helm, "valuesObject")
    roots = read_nodes_text("values", written)
    plain = roots.nodes[0].plain() if roots.nodes and not roots.reporter.diagnostics else None
    return plain if isinstance(plain, dict) else {"meshConfig": written}  # the reader of the values reports the error


# Gateways


def _gateways(spec: Data, root_namespace: str, span: Span | None) -> Iterator[Workload]:
    """Yield the gateways of an IstioOperator: those of its profile, and those that it lists and does not disable.

    The namespace of the object itself does not matter: istioctl installs gateways into that of the control plane.
    """
    components, profile = mapping(spec, "components"), text(spec, "profile") or "default"
    for component, role in _GATEWAYS:
        listed = {text(entry, "name") or f"istio-{role}": entry for entry in mappings(components, component)}
        if role in _PROFILES.get(profile, ()):
            listed.setdefault(f"istio-{role}", {})
        for name, entry in sorted(listed.items()):
            if entry.get("enabled") not in (False, "false"):
                yield _gateway(entry, text(entry, "namespace") or root_namespace, name, role, span)


def _gateway(entry: Data, namespace: str, name: str, role: str, span: Span | None) -> Workload:
    labels = {key: value for key, value in mapping(entry, "label").items() if isinstance(value, str)}
    return Workload(
        f"{namespace}/{name}",
        namespace,
        name,
        {"app": f"istio-{role}", "istio": role, **labels},
        _AS_GATEWAY,
        f"{name}-service-account",
        tuple(ContainerPort(number) for number in _PORTS),
        owners=(Owner("Deployment", name),),
        derived=True,
        span=span,
    )
