"""Kubernetes manifests into objects of the world.

Only the fields that the world needs are read, since these kinds are Kubernetes' own and hold much that
is no business of authorization. What is read must be right: an object with a label that is no string
or a port that is no number is reported, with everything else that is wrong with it, and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import codes
from eastgate.cluster.examination import Examination
from eastgate.cluster.fields import Data, entries, mapping, number, strings, text
from eastgate.cluster.gateways import ROUTE_KINDS
from eastgate.cluster.installations import installs_mesh, read_installation
from eastgate.cluster.kinds import WorldObject, object_id, world_kind
from eastgate.cluster.manifest import Manifest
from eastgate.cluster.mesh_gateways import MESH_GATEWAY, read_mesh_gateway
from eastgate.cluster.names import dns_label_problem, dns_subdomain_problem
from eastgate.cluster.objects import ClusterNode, ConfigMap, Namespace, ObjectId, Service, ServiceAccount, ServicePort
from eastgate.cluster.pods import CONTROLLER_KINDS
from eastgate.cluster.read_containers import PROTOCOL, read_protocol
from eastgate.cluster.read_externals import EXTERNAL, OLD_EXTERNAL, OLD_VERSION, read_external
from eastgate.cluster.read_gateways import GATEWAY, GRANT, read_gateway, read_grant, read_route, route_shape
from eastgate.cluster.read_pods import POD, controller_shape, read_controller, read_pod
from eastgate.cluster.secrets import SECRET, read_secret
from eastgate.cluster.shapes import NAMED_PORT, PORT, STRINGS, TEXT, each, record, usual_address
from eastgate.cluster.slices import SLICE, read_slice
from eastgate.reading.manifests.shapes.fitting import Fits, fits
from eastgate.reading.manifests.shapes.shape import Field, Record


def _has_target(port: Data) -> bool:
    """Return whether there is a target: 0 and the empty string are none to Kubernetes."""
    target = port.get("targetPort")
    return isinstance(target, bool) or (target != 0 and target != "")


def interpret(manifest: Manifest, reporter: Reporter, namespace: str = "default") -> WorldObject | None:
    """Return the object that a manifest declares; None for a kind that is not used, or with errors, which are reported.

    `namespace` is where it is if it does not say.
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
        return None  # the Deployment that it refers to stands for the pods
    shape, is_fitting = _form(kind, is_old=data.get("apiVersion") == OLD_VERSION)
    if not is_fitting(data):
        examination.examine(shape, data)
    return _read(kind, data, identity, manifest.span) if len(reporter.diagnostics) == before else None


_METADATA = record({"labels": STRINGS, "annotations": STRINGS})
_SERVICE_PORT = each(
    {
        "port": Field(PORT, required=True),
        "targetPort": Field(NAMED_PORT, when=_has_target),
        "name": TEXT,
        "protocol": PROTOCOL,
        "appProtocol": TEXT,
    }
)
_SERVICE = record(
    {
        "metadata": record({"labels": STRINGS}),
        "spec": record({"selector": STRINGS, "ports": _SERVICE_PORT, "type": TEXT, "clusterIP": TEXT}),
    }
)
_NODE = record({"metadata": _METADATA, "status": record({"addresses": each({"type": TEXT, "address": TEXT})})})
_SHAPES = {
    "Pod": POD,
    "ExternalWorkload": EXTERNAL,
    "Service": _SERVICE,
    "EndpointSlice": SLICE,
    "Secret": SECRET,
    "ServiceAccount": record({}),
    "Namespace": record({"metadata": _METADATA}),
    "Node": _NODE,
    "ConfigMap": record({}),
    "Gateway": GATEWAY,
    "MeshGateway": MESH_GATEWAY,
    "MeshInstallation": record({}),
    "ReferenceGrant": GRANT,
    **{kind: controller_shape(kind) for kind in CONTROLLER_KINDS},
    **{kind: route_shape(kind) for kind in ROUTE_KINDS},
}


@cache
def _form(kind: str, *, is_old: bool) -> tuple[Record[None], Fits]:
    """Return the shape of a kind, and what tells whether an object has it."""
    shape = OLD_EXTERNAL if is_old else _SHAPES[kind]
    return shape, fits(shape)


def _read(kind: str, root: Data, identity: ObjectId, span: Span | None) -> WorldObject:
    namespace, name = identity.namespace, identity.name
    if kind in CONTROLLER_KINDS:
        return read_controller(kind, root, namespace, name, span)
    if kind in ROUTE_KINDS:
        return read_route(kind, root, namespace, name, span)
    reads = _READERS.get(kind)
    return reads(root, namespace, name, span) if reads is not None else _NAMELESS[kind](root, name, span)


def _account(_: Data, namespace: str, name: str, span: Span | None) -> ServiceAccount:
    return ServiceAccount(namespace, name, span)


def _config_map(root: Data, namespace: str, name: str, span: Span | None) -> ConfigMap:
    data = mapping(root, "data")
    settings = {key: value for key in _READ_SETTINGS if isinstance(value := data.get(key), str)}
    return ConfigMap(namespace, name, settings, span)


def _namespace(root: Data, name: str, span: Span | None) -> Namespace:
    metadata = mapping(root, "metadata")
    is_ending = text(metadata, "deletionTimestamp") is not None
    return Namespace(name, strings(metadata, "labels"), strings(metadata, "annotations"), span, is_ending)


_NAME_HELP = "write a name that the API server accepts: lower-case letters, digits and -"


def _check_names(identity: ObjectId, examination: Examination) -> None:
    """Report bad names: they become parts of keys and identities, in which `/` would make one read as another."""
    problem = dns_label_problem(identity.name) if identity.kind == "Namespace" else dns_subdomain_problem(identity.name)
    if problem:
        message = f"`{identity.name}` is not a name of a {identity.kind}: {problem}"
        examination.report(codes.BAD_NAME, message, ("metadata", "name"), _NAME_HELP)
    problem = dns_label_problem(identity.namespace) if identity.namespace else None
    if problem:
        message = f"`{identity.namespace}` is not a name of a namespace: {problem}"
        examination.report(codes.BAD_NAME, message, ("metadata", "namespace"), _NAME_HELP)


def _service(root: Data, namespace: str, name: str, span: Span | None) -> Service:
    spec = mapping(root, "spec")
    return Service(
        namespace=namespace,
        name=name,
        selector=strings(spec, "selector"),
        ports=tuple(_service_port(port) for port in entries(spec, "ports")),
        type=text(spec, "type") or "ClusterIP",
        labels=strings(mapping(root, "metadata"), "labels"),
        is_headless=text(spec, "clusterIP") == "None",
        address=_address_of(spec),
        addresses=_addresses_of(spec),
        span=span,
    )


def _address_of(service: Data) -> str | None:
    """Return the one address of a Service; those in `clusterIPs` include that in `clusterIP`."""
    address, every = text(service, "clusterIP"), service.get("clusterIPs")
    has_several = isinstance(every, list) and len(every) > 1
    return None if address in (None, "", "None") or has_several else address


def _addresses_of(service: Data) -> tuple[str, ...]:
    """Return all addresses of a Service, in their usual spelling."""
    every = service.get("clusterIPs")
    written = [text(service, "clusterIP"), *(every if isinstance(every, list) else ())]
    usual = (usual_address(address) for address in written if isinstance(address, str))
    return tuple(dict.fromkeys(address for address in usual if address is not None))


def _node(root: Data, name: str, span: Span | None) -> ClusterNode:
    """Return a node with those of its addresses that are IP addresses: others are names."""
    addresses = (text(entry, "address") for entry in entries(mapping(root, "status"), "addresses"))
    usual = (usual_address(address) for address in addresses if address)
    known = tuple(address for address in usual if address is not None)
    return ClusterNode(name, strings(mapping(root, "metadata"), "labels"), known, span)


def _service_port(port: Data) -> ServicePort:
    own = number(port, "port") or 0
    target = text(port, "targetPort") or number(port, "targetPort") or own
    return ServicePort(own, target, text(port, "name"), read_protocol(port), text(port, "appProtocol"))


_READ_SETTINGS = ("mesh",)  # of all ConfigMaps: what else is in them is nobody's business
_READERS: Mapping[str, Callable[[Data, str, str, Span | None], WorldObject]] = {
    "Pod": read_pod,
    "ExternalWorkload": read_external,
    "Service": _service,
    "EndpointSlice": read_slice,
    "Secret": read_secret,
    "ServiceAccount": _account,
    "ConfigMap": _config_map,
    "Gateway": read_gateway,
    "MeshGateway": read_mesh_gateway,
    "MeshInstallation": read_installation,
    "ReferenceGrant": read_grant,
}
_NAMELESS: Mapping[str, Callable[[Data, str, Span | None], WorldObject]] = {"Namespace": _namespace, "Node": _node}
"""The readers of kinds that are in no namespace."""
