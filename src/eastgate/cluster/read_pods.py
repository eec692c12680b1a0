"""Pods, and the controllers that make them, out of Kubernetes data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import codes
from eastgate.cluster.fields import Data, entries, mapping, strings, text
from eastgate.cluster.kinds import canonical_group, group_of, world_kind
from eastgate.cluster.names import dns_subdomain_problem
from eastgate.cluster.operated import OPERATED, OPERATED_FIELDS, knative_pod, operated
from eastgate.cluster.pods import Controller, Owner, Pod
from eastgate.cluster.read_containers import containers, read_containers
from eastgate.cluster.shapes import ADDRESS, FLAG, STRINGS, TEXT, AnyShape, Of, each, record, usual_address
from eastgate.reading.manifests.shapes.demands import Demand, Problem
from eastgate.reading.manifests.shapes.shape import Field, Record, Text

# Shapes


def _account_problems(name: str) -> Iterator[Problem]:
    problem = dns_subdomain_problem(name) if name else None
    if problem:
        message = f"`{name}` is not the name of a service account: {problem}"
        yield Problem(codes.BAD_NAME, message, "write its name alone; its namespace is the pod's")


def _lacks_account(spec: Data) -> bool:
    return not text(spec, "serviceAccountName")


def _lacks_addresses(status: Data) -> bool:
    several = status.get("podIPs")
    return not isinstance(several, list) or not any(isinstance(entry, dict) for entry in several)


def _controls(reference: Data) -> bool:
    return reference.get("controller") is True


_ACCOUNT: Text[None] = Text("a name", Demand(_account_problems))


def _pod_spec(*, probed: bool = True) -> dict[str, Of | AnyShape]:
    return {
        "serviceAccountName": _ACCOUNT,
        "serviceAccount": Field(_ACCOUNT, when=_lacks_account),  # which the other has replaced
        "hostNetwork": FLAG,
        **containers(probed=probed),
    }


_LABELS: dict[str, AnyShape] = {"labels": STRINGS, "annotations": STRINGS}
_OWNERS = each(
    {
        "controller": FLAG,
        "apiVersion": Field(TEXT, when=_controls),
        "kind": Field(TEXT, required=True, when=_controls),
        "name": Field(TEXT, required=True, when=_controls),
    }
)
_STATUS = record(
    {
        "podIPs": each({"ip": ADDRESS}),
        "podIP": Field(ADDRESS, when=_lacks_addresses),
        "hostIP": ADDRESS,
        "phase": TEXT,
        "conditions": each({"type": TEXT, "status": TEXT}),
    }
)
POD = record(
    {
        "status": _STATUS,
        "metadata": record({**_LABELS, "ownerReferences": _OWNERS, "uid": TEXT, "deletionTimestamp": TEXT}),
        "spec": record(_pod_spec()),
    }
)


def _makes_pods(spec: Record[None]) -> Record[None]:
    return record({"spec": Field(spec, implied=True), "metadata": record({"ownerReferences": _OWNERS})})


def _templated(metadata: dict[str, AnyShape], *, probed: bool = True) -> Record[None]:
    template = record({"metadata": record(_LABELS | metadata), "spec": record(_pod_spec(probed=probed))})
    return record({"template": Field(template, required=True)})


_CONTROLLER = _makes_pods(_templated({}))
_JOB = Field(record({"spec": Field(_templated({}), implied=True)}), implied=True)
_SHAPES = {
    "CronJob": _makes_pods(record({"jobTemplate": _JOB})),
    "KnativeService": _makes_pods(_templated({"name": TEXT}, probed=False)),  # whose proxy asks the container itself
    **dict.fromkeys(OPERATED, _makes_pods(record({"podMetadata": record(_LABELS), **_pod_spec(), **OPERATED_FIELDS}))),
}


def controller_shape(kind: str) -> Record[None]:
    """Return the shape of a kind that makes pods."""
    return _SHAPES.get(kind, _CONTROLLER)


# Meaning


def read_pod(root: Data, namespace: str, name: str, span: Span | None) -> Pod:
    """Return a Pod."""
    metadata, spec, status = mapping(root, "metadata"), mapping(root, "spec"), mapping(root, "status")
    return _pod(
        metadata,
        spec,
        namespace,
        name,
        span,
        # The address of a pod on the host's network is the node's: it does not tell pods apart.
        ips=() if spec.get("hostNetwork") else _ips(status),
        owner=_owner(metadata),
        finished=status.get("phase") in ("Succeeded", "Failed"),
        host_ip=next(iter(read_addresses([text(status, "hostIP")])), None),
        uid=text(metadata, "uid") or "",
        ready=_is_ready(metadata, status),
    )


def read_controller(kind: str, root: Data, namespace: str, name: str, span: Span | None) -> Controller:
    """Return a Deployment, or another kind that makes pods from a template."""
    holder, owner = mapping(root, "spec"), _owner(mapping(root, "metadata"))
    if kind in OPERATED:
        pod = _pod(mapping(holder, "podMetadata"), holder, namespace, name, span)
        return Controller(kind, operated(kind, pod, holder), owner, span)
    if kind == "CronJob":
        holder = mapping(mapping(holder, "jobTemplate"), "spec")
    template = mapping(holder, "template")
    metadata, probed = mapping(template, "metadata"), kind != "KnativeService"
    pod = _pod(metadata, mapping(template, "spec"), namespace, name, span, probed=probed)
    if kind == "KnativeService":
        pod = knative_pod(pod, text(metadata, "name"))
    return Controller(kind, pod, owner, span)


def _pod(
    metadata: Data,
    spec: Data,
    namespace: str,
    name: str,
    span: Span | None,
    *,
    probed: bool = True,
    ips: tuple[str, ...] = (),
    owner: Owner | None = None,
    finished: bool = False,
    host_ip: str | None = None,
    uid: str = "",
    ready: bool = True,
) -> Pod:
    declared = read_containers(spec, probed=probed)
    return Pod(
        namespace=namespace,
        name=name,
        labels=strings(metadata, "labels"),
        annotations=strings(metadata, "annotations"),
        service_account=text(spec, "serviceAccountName") or text(spec, "serviceAccount") or "default",
        ports=declared.ports,
        ips=ips,
        owner=owner,
        finished=finished,
        init_ports=declared.init_ports,
        probes=declared.probes,
        host_network=spec.get("hostNetwork") is True,
        host_ip=host_ip,
        uid=uid,
        ready=ready,
        mesh_proxies=declared.mesh_proxies,
        span=span,
    )


def _is_ready(metadata: Data, status: Data) -> bool:
    """Return whether a pod takes requests. Manifests that people write do not tell, and their pods do."""
    unready = any(
        (text(condition, "type"), text(condition, "status")) == ("Ready", "False")
        for condition in entries(status, "conditions")
    )
    return not unready and not text(metadata, "deletionTimestamp")


def _owner(metadata: Data) -> Owner | None:
    """Return the owner that controls an object, of which there is at most one."""
    owner: Owner | None = None
    for reference in entries(metadata, "ownerReferences"):
        if reference.get("controller"):
            group = group_of(text(reference, "apiVersion") or "")
            kind, name = text(reference, "kind") or "", text(reference, "name") or ""
            # Other groups have a StatefulSet or Job of their own, which must not pass for Kubernetes' one.
            home = canonical_group(group, kind) if group else None
            own = kind if not group else world_kind(home, kind) if home is not None else f"{kind}.{group}"
            owner = Owner(own, name)
    return owner


def _ips(status: Data) -> tuple[str, ...]:
    """Return `podIPs`, of which `podIP` is the first; old objects have only the latter."""
    several = entries(status, "podIPs")
    return (
        read_addresses(text(entry, "ip") for entry in several) if several else read_addresses([text(status, "podIP")])
    )


def read_addresses(addresses: Iterable[str | None]) -> tuple[str, ...]:
    """Return IP addresses in their usual spelling."""
    return tuple(usual for address in addresses if address and (usual := usual_address(address)) is not None)
