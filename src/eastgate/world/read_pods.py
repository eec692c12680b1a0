"""Pods, and the controllers that make them, out of Kubernetes data."""

from __future__ import annotations

import ipaddress

from eastgate.places import Span
from eastgate.world import codes
from eastgate.world.fields import Section
from eastgate.world.kinds import canonical_group, group_of
from eastgate.world.names import dns_subdomain_problem
from eastgate.world.pods import ContainerPort, Controller, Owner, Pod

__all__ = ["read_controller", "read_pod", "read_protocol"]

_PROTOCOLS = ("TCP", "UDP", "SCTP")


def read_pod(root: Section, namespace: str, name: str, span: Span | None) -> Pod:
    """A Pod."""
    metadata, spec, status = root.section("metadata"), root.section("spec"), root.section("status")
    ips = _ips(status)
    finished = status.text("phase") in ("Succeeded", "Failed")
    return Pod(
        namespace=namespace,
        name=name,
        labels=metadata.strings("labels"),
        annotations=metadata.strings("annotations"),
        service_account=_service_account(spec),
        ports=_container_ports(spec),
        # The address of a pod on the host's network is the node's: it does not tell pods apart.
        ips=() if spec.flag("hostNetwork") else ips,
        owner=_owner(metadata),
        finished=finished,
        span=span,
    )


def read_controller(kind: str, root: Section, namespace: str, name: str, span: Span | None) -> Controller:
    """A Deployment, or another kind that makes pods from a template."""
    holder = root.section("spec")
    if kind == "CronJob":
        holder = holder.section("jobTemplate").section("spec")
    if not holder.has("template"):
        holder.missing("template")
    template = holder.section("template")
    metadata, spec = template.section("metadata"), template.section("spec")
    pod = Pod(
        namespace=namespace,
        name=name,
        labels=metadata.strings("labels"),
        annotations=metadata.strings("annotations"),
        service_account=_service_account(spec),
        ports=_container_ports(spec),
        span=span,
    )
    return Controller(kind, pod, _owner(root.section("metadata")), span)


def read_protocol(port: Section) -> str:
    """The protocol of a port of a container or Service."""
    protocol = port.text("protocol")
    if protocol and protocol not in _PROTOCOLS:
        known = protocol.upper() in _PROTOCOLS
        port.complain(
            codes.BAD_PROTOCOL,
            f"`{protocol}` is not a protocol of a port",
            "protocol",
            help=f"write {protocol.upper()}" if known else "write TCP, UDP or SCTP",
        )
    return protocol or "TCP"


def _container_ports(spec: Section) -> tuple[ContainerPort, ...]:
    """Containers first, then sidecars: the order in which Kubernetes resolves a port's name."""
    containers = list(spec.sections("containers"))
    sidecars = [c for c in spec.sections("initContainers") if c.text("restartPolicy") == "Always"]
    return tuple(
        ContainerPort(port.required_port("containerPort"), port.text("name"), read_protocol(port))
        for container in containers + sidecars
        for port in container.sections("ports")
    )


def _service_account(spec: Section) -> str:
    """The current field, the old one that it replaced, or the account that every namespace has."""
    for field in ("serviceAccountName", "serviceAccount"):
        name = spec.text(field)
        if name:
            problem = dns_subdomain_problem(name)
            if problem:
                message = f"`{name}` is not the name of a service account: {problem}"
                spec.complain(codes.BAD_NAME, message, field, help="write its name alone; its namespace is the pod's")
            return name
    return "default"


def _owner(metadata: Section) -> Owner | None:
    """The owner that controls an object, of which there is at most one."""
    owner: Owner | None = None
    for reference in metadata.sections("ownerReferences"):
        if reference.flag("controller"):
            group = group_of(reference.text("apiVersion") or "")
            kind, name = reference.required_text("kind"), reference.required_text("name")
            # Other groups have a StatefulSet or Job of their own, which must not pass for Kubernetes' one.
            foreign = group and canonical_group(group, kind) is None
            owner = Owner(f"{kind}.{group}" if foreign else kind, name)
    return owner


def _ips(status: Section) -> tuple[str, ...]:
    """`podIPs`, of which `podIP` is the first; old objects have only the latter."""
    found = [(entry, "ip", entry.text("ip")) for entry in status.sections("podIPs")]
    if not found:
        found = [(status, "podIP", status.text("podIP"))]
    ips = []
    for section, key, text in found:
        if text:
            try:
                ips.append(str(ipaddress.ip_address(text)))
            except ValueError:
                section.complain(
                    codes.BAD_ADDRESS, f"`{text}` is not an IP address", key, help="write an IPv4 or IPv6 address"
                )
    return tuple(ips)
