"""Kubernetes manifests into objects of the world.

Eastgate reads only the fields that the world needs: these kinds are Kubernetes' own, and most of their fields do not
matter for authorization. The fields that it reads must be valid. An object with a label that is no string, or a port
that is no number, is reported with all its errors, and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import codes
from eastgate.cluster.examination import Examination
from eastgate.cluster.externals import EXTERNAL_GROUP, ExternalWorkload
from eastgate.cluster.fields import Data, mapping
from eastgate.cluster.gateways import MESH_GATEWAY, MeshGateway, ReferenceGrant
from eastgate.cluster.installations import installs_mesh, read_installation
from eastgate.cluster.kinds import WorldObject, object_id, world_kind
from eastgate.cluster.names import dns_label_problem, dns_subdomain_problem
from eastgate.cluster.objects import (
    ClusterNode,
    ConfigMap,
    Manifest,
    Namespace,
    ObjectId,
    Service,
    ServiceAccount,
    ServicePort,
)
from eastgate.cluster.read_containers import PROTOCOL, ports
from eastgate.cluster.read_gateways import GATEWAY, GRANT, ROUTES, make_gateway
from eastgate.cluster.read_machines import MACHINES
from eastgate.cluster.read_pods import CONTROLLERS, POD, make_pod
from eastgate.cluster.secrets import SECRET, make_secret
from eastgate.cluster.shapes import (
    ADDRESS,
    NAMED_PORT,
    PORT,
    STRINGS,
    TEXT,
    Fields,
    Of,
    each,
    given,
    record,
    usual_address,
)
from eastgate.cluster.slices import SLICE, make_slice
from eastgate.ir.spiffe import spiffe_problem
from eastgate.reading.manifests.shapes.constraints import Demand, Problem
from eastgate.reading.manifests.shapes.reading import MisfitError, Reader, reader
from eastgate.reading.manifests.shapes.shape import Anything, Field, Record, Text

# ExternalWorkloads


OLD_VERSION = f"{EXTERNAL_GROUP}/v1alpha1"


def _identity_problems(name: str) -> Iterator[Problem]:
    """Demand a DNS name or a SPIFFE ID, as in its certificate: no caller can prove another name."""
    problem = spiffe_problem(name) if name.startswith("spiffe:") else dns_subdomain_problem(name)
    if problem:
        message = f"`{name}` is not the name of a workload in the mesh: {problem}"
        yield Problem(codes.BAD_NAME, message, "write the name that is in its certificate: a DNS name, or spiffe://..")


def _external(tls: str) -> Record[None]:
    name: Of = Field(Text("a name", Demand(_identity_problems)), required=True, into="mesh_name")
    addresses = each({"ip": ADDRESS}, make=lambda ip=None: ip, together=lambda ips: tuple(filter(None, ips)))
    spec: Fields = {
        "workloadIPs": Field(addresses, into="ips"),
        tls: Field(record({"identity": name}), required=True),
        "ports": ports("port"),
    }
    metadata = record({"labels": STRINGS, "annotations": STRINGS})
    return record({"spec": Field(record(spec), implied=True), "metadata": metadata})


EXTERNAL, OLD_EXTERNAL = _external("meshTLS"), _external("meshTls")
"""The first version spelled one field differently."""


def _has_target(port: Data) -> bool:
    """Return whether there is a target: Kubernetes treats 0 and the empty string as none."""
    target = port.get("targetPort")
    return isinstance(target, bool) or (target != 0 and target != "")


def interpret(manifest: Manifest, reporter: Reporter, namespace: str = "default") -> WorldObject | None:
    """Return the object that a manifest declares; None for an unused kind, or with errors, which are reported.

    `namespace` is that of a manifest without one.
    """
    identity = object_id(manifest.api_version, manifest.kind, manifest.namespace or namespace, manifest.name)
    if identity is None:
        return None
    before = len(reporter.diagnostics)
    kind, data = world_kind(identity.group, identity.kind), manifest.data
    if kind == "MeshInstallation" and not installs_mesh(data):
        return None
    examination = Examination(manifest, reporter)
    _check_names(identity, examination)
    if kind == "Rollout" and mapping(data, "spec").get("workloadRef") is not None:
        return None  # the Deployment that it refers to has the pods
    is_named = len(reporter.diagnostics) == before
    if kind == "MeshInstallation":
        return read_installation(data, identity.namespace, identity.name, manifest.span) if is_named else None
    shape, read, make = _form(OLD_VERSION if data.get("apiVersion") == OLD_VERSION else kind)
    try:
        fields = read(data, identity.namespace)
    except MisfitError:
        examination.examine(shape, data)
        if len(reporter.diagnostics) == before:
            raise  # rather than ignore an object
        return None
    if identity.namespace:
        fields["namespace"] = identity.namespace
    return make(name=identity.name, span=manifest.span, **fields) if is_named else None


def _config_map(*, data: object = None, **fields: Any) -> ConfigMap:
    written = data if isinstance(data, dict) else {}
    settings = {key: value for key in _READ_SETTINGS if isinstance(value := written.get(key), str)}
    return ConfigMap(data=settings, **fields)


def _namespace(*, deletion_timestamp: object = None, **fields: Any) -> Namespace:
    return Namespace(is_ending=isinstance(deletion_timestamp, str), **fields)


def _service(*, cluster_ip: str = "", cluster_ips: object = None, **fields: Any) -> Service:
    """Return a Service. `clusterIPs` include `clusterIP`: with several addresses, the Service has no single one."""
    every = cluster_ips if isinstance(cluster_ips, list) else []
    usual = [usual_address(address) for address in (cluster_ip, *every) if isinstance(address, str)]
    return Service(
        is_headless=cluster_ip == "None",
        address=None if cluster_ip in ("", "None") or len(every) > 1 else cluster_ip,
        addresses=tuple(dict.fromkeys(filter(None, usual))),
        **fields,
    )


def _service_port(
    *,
    port: int,
    target_port: int | str | None = None,
    name: str | None = None,
    protocol: str = "TCP",
    app_protocol: str | None = None,
) -> ServicePort:
    return ServicePort(port, port if target_port is None else target_port, name, protocol, app_protocol)


def _node(*, annotations: object = None, **fields: Any) -> ClusterNode:  # noqa: ARG001 - checked, and not kept
    return ClusterNode(**fields)


def _ips(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """Return the IP addresses among the addresses of a node: others are names."""
    return tuple(filter(None, map(usual_address, addresses)))


_READ_SETTINGS = ("mesh",)  # keys that are read; the rest of a ConfigMap is left out
_METADATA: Fields = {"labels": STRINGS, "annotations": STRINGS}
_SERVICE_PORT = each(
    {
        "port": Field(PORT, required=True),
        "targetPort": Field(NAMED_PORT, when=_has_target),
        "name": TEXT,
        "protocol": PROTOCOL,
        "appProtocol": TEXT,
    },
    make=_service_port,
)
_SERVICE: Fields = {
    "selector": STRINGS,
    "ports": _SERVICE_PORT,
    "type": given(TEXT),
    "clusterIP": TEXT,
    "clusterIPs": Anything(),
}
_ADDRESSES = each({"type": TEXT, "address": TEXT}, make=lambda address="", **_: address, together=_ips)
_FORMS: Mapping[str, tuple[Record[None], Callable[..., WorldObject]]] = {
    "Pod": (POD, make_pod),
    "ExternalWorkload": (EXTERNAL, ExternalWorkload),
    OLD_VERSION: (OLD_EXTERNAL, ExternalWorkload),
    "Service": (record({"metadata": record({"labels": STRINGS}), "spec": record(_SERVICE)}), _service),
    "EndpointSlice": (SLICE, make_slice),
    "Secret": (SECRET, make_secret),
    "ServiceAccount": (record({}), ServiceAccount),
    "Namespace": (record({"metadata": record({**_METADATA, "deletionTimestamp": Anything()})}), _namespace),
    "Node": (record({"metadata": record(_METADATA), "status": record({"addresses": _ADDRESSES})}), _node),
    "ConfigMap": (record({"data": Anything()}), _config_map),
    "Gateway": (GATEWAY, make_gateway),
    "MeshGateway": (MESH_GATEWAY, MeshGateway),
    "ReferenceGrant": (GRANT, ReferenceGrant),
    **CONTROLLERS,
    **MACHINES,
    **ROUTES,
}
"""The shape of each kind, and the function that makes an object of its fields."""


@cache
def _form(kind: str) -> tuple[Record[None], Reader, Callable[..., WorldObject]]:
    shape, make = _FORMS[kind]
    return shape, reader(shape), make


_NAME_HELP = "write a name that the API server accepts: lower-case letters, digits and -"


def _check_names(identity: ObjectId, examination: Examination) -> None:
    """Report invalid names: they become parts of keys and identities, where a `/` would make two names equal."""
    problem = dns_label_problem(identity.name) if identity.kind == "Namespace" else dns_subdomain_problem(identity.name)
    if problem:
        message = f"`{identity.name}` is not a name of a {identity.kind}: {problem}"
        examination.report(codes.BAD_NAME, message, ("metadata", "name"), _NAME_HELP)
    problem = dns_label_problem(identity.namespace) if identity.namespace else None
    if problem:
        message = f"`{identity.namespace}` is not a name of a namespace: {problem}"
        examination.report(codes.BAD_NAME, message, ("metadata", "namespace"), _NAME_HELP)
