"""Kubernetes manifests into objects of the world.

Only the fields that the world needs are read, since these kinds are Kubernetes' own and hold much that
is no business of authorization. What is read must be right: an object with a label that is no string
or a port that is no number is reported, with everything else that is wrong with it, and left out.
"""

from __future__ import annotations

from eastgate.diagnostics import Reporter
from eastgate.places import Span
from eastgate.world import codes
from eastgate.world.fields import Section
from eastgate.world.gateways import ROUTE_KINDS
from eastgate.world.kinds import WorldObject, object_id, world_kind
from eastgate.world.manifest import Manifest
from eastgate.world.names import dns_label_problem, dns_subdomain_problem
from eastgate.world.objects import Namespace, ObjectId, Service, ServiceAccount, ServicePort
from eastgate.world.pods import CONTROLLER_KINDS
from eastgate.world.read_containers import read_protocol
from eastgate.world.read_externals import read_external
from eastgate.world.read_gateways import read_gateway, read_grant, read_route
from eastgate.world.read_pods import read_controller, read_pod
from eastgate.world.secrets import read_secret
from eastgate.world.slices import read_slice

__all__ = ["interpret"]


def interpret(manifest: Manifest, reporter: Reporter, namespace: str = "default") -> WorldObject | None:
    """The object that a manifest declares; None for a kind that is not used, or with errors, which are reported.

    `namespace` is where it is if it does not say.
    """
    identity = object_id(manifest.api_version, manifest.kind, manifest.namespace or namespace, manifest.name)
    if identity is None:
        return None
    before = len(reporter.found)
    root = Section(manifest, reporter)
    _check_names(root, identity)
    kind = world_kind(identity.group, identity.kind)
    if kind == "Rollout" and root.section("spec").has("workloadRef"):
        return None  # the Deployment that it refers to stands for the pods
    declared = _read(kind, root, identity, manifest.span)
    return declared if len(reporter.found) == before else None


def _read(kind: str, root: Section, identity: ObjectId, span: Span | None) -> WorldObject:
    namespace, name = identity.namespace, identity.name
    if kind in CONTROLLER_KINDS:
        return read_controller(kind, root, namespace, name, span)
    if kind in ROUTE_KINDS:
        return read_route(kind, root, namespace, name, span)
    match kind:
        case "Pod":
            return read_pod(root, namespace, name, span)
        case "ExternalWorkload":
            return read_external(root, namespace, name, span)
        case "Service":
            return _service(root, namespace, name, span)
        case "EndpointSlice":
            return read_slice(root, namespace, name, span)
        case "Secret":
            return read_secret(root, namespace, name, span)
        case "ServiceAccount":
            return ServiceAccount(namespace, name, span)
        case "Namespace":
            metadata = root.section("metadata")
            return Namespace(name, metadata.strings("labels"), metadata.strings("annotations"), span)
        case "Gateway":
            return read_gateway(root, namespace, name, span)
        case "ReferenceGrant":
            return read_grant(root, namespace, name, span)
    raise AssertionError(kind)


_NAME_HELP = "write a name that the API server accepts: lower-case letters, digits and -"


def _check_names(root: Section, identity: ObjectId) -> None:
    """Names become parts of keys and identities, in which `/` and the like would make one thing read as another."""
    problem = dns_label_problem(identity.name) if identity.kind == "Namespace" else dns_subdomain_problem(identity.name)
    if problem:
        message = f"`{identity.name}` is not a name of a {identity.kind}: {problem}"
        root.complain(codes.BAD_NAME, message, "metadata", "name", help=_NAME_HELP)
    problem = dns_label_problem(identity.namespace) if identity.namespace else None
    if problem:
        message = f"`{identity.namespace}` is not a name of a namespace: {problem}"
        root.complain(codes.BAD_NAME, message, "metadata", "namespace", help=_NAME_HELP)


def _service(root: Section, namespace: str, name: str, span: Span | None) -> Service:
    spec = root.section("spec")
    return Service(
        namespace=namespace,
        name=name,
        selector=spec.strings("selector"),
        ports=tuple(_service_port(port) for port in spec.sections("ports")),
        type=spec.text("type") or "ClusterIP",
        span=span,
    )


def _service_port(port: Section) -> ServicePort:
    number = port.required_port("port")
    target = port.port_or_name("targetPort")
    return ServicePort(number, number if target is None else target, port.text("name"), read_protocol(port))
