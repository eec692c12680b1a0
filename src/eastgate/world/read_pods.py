"""Pods, and the controllers that make them, out of Kubernetes data."""

from __future__ import annotations

from dataclasses import replace

from eastgate.places import Span
from eastgate.world import codes
from eastgate.world.fields import Section
from eastgate.world.kinds import canonical_group, group_of, world_kind
from eastgate.world.names import dns_subdomain_problem
from eastgate.world.operated import OPERATED, knative_pod, operated
from eastgate.world.pods import Controller, Owner, Pod
from eastgate.world.read_containers import read_containers

__all__ = ["read_controller", "read_pod"]


def read_pod(root: Section, namespace: str, name: str, span: Span | None) -> Pod:
    """A Pod."""
    metadata, spec, status = root.section("metadata"), root.section("spec"), root.section("status")
    ips = _ips(status)
    finished = status.text("phase") in ("Succeeded", "Failed")
    return replace(
        _described(metadata, spec, namespace, name, span),
        # The address of a pod on the host's network is the node's: it does not tell pods apart.
        ips=() if spec.flag("hostNetwork") else ips,
        owner=_owner(metadata),
        finished=finished,
    )


def read_controller(kind: str, root: Section, namespace: str, name: str, span: Span | None) -> Controller:
    """A Deployment, or another kind that makes pods from a template."""
    holder = root.section("spec")
    if kind in OPERATED:
        metadata = holder.section("podMetadata")
        pod = operated(kind, _described(metadata, holder, namespace, name, span), holder)
        return Controller(kind, pod, _owner(root.section("metadata")), span)
    if kind == "CronJob":
        holder = holder.section("jobTemplate").section("spec")
    if not holder.has("template"):
        holder.missing("template")
    template = holder.section("template")
    probed = kind != "KnativeService"  # whose proxy asks the container itself
    pod = _described(template.section("metadata"), template.section("spec"), namespace, name, span, probed=probed)
    if kind == "KnativeService":
        pod = knative_pod(pod, template.section("metadata").text("name"))
    return Controller(kind, pod, _owner(root.section("metadata")), span)


def _described(
    metadata: Section, spec: Section, namespace: str, name: str, span: Span | None, *, probed: bool = True
) -> Pod:
    """What a pod and the template of one say alike."""
    labels, annotations = metadata.strings("labels"), metadata.strings("annotations")
    account, containers = _service_account(spec), read_containers(spec, probed=probed)
    return Pod(
        namespace=namespace,
        name=name,
        labels=labels,
        annotations=annotations,
        service_account=account,
        ports=containers.ports,
        init_ports=containers.init_ports,
        probes=containers.probes,
        span=span,
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
            home = canonical_group(group, kind) if group else None
            own = kind if not group else world_kind(home, kind) if home is not None else f"{kind}.{group}"
            owner = Owner(own, name)
    return owner


def _ips(status: Section) -> tuple[str, ...]:
    """`podIPs`, of which `podIP` is the first; old objects have only the latter."""
    entries = list(status.sections("podIPs"))
    found = [entry.address("ip") for entry in entries] if entries else [status.address("podIP")]
    return tuple(ip for ip in found if ip is not None)
