"""Pods, and the controllers that make them, from Kubernetes data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import codes
from eastgate.cluster.fields import Data, text
from eastgate.cluster.kinds import canonical_group, group_of, world_kind
from eastgate.cluster.names import dns_subdomain_problem
from eastgate.cluster.pods import CONTROLLER_KINDS, ContainerPort, Controller, Owner, Pod
from eastgate.cluster.read_containers import Container, containers, of_containers
from eastgate.cluster.shapes import ADDRESS, FLAG, STRINGS, TEXT, Fields, Of, each, given, record
from eastgate.reading.manifests.shapes.constraints import Demand, Problem
from eastgate.reading.manifests.shapes.shape import Anything, Field, Record, Text

# Pods that operators make: Knative and the Prometheus operator add labels and ports to those of the user. The labels
# and ports are those of their sources (knative/serving `pkg/reconciler`, prometheus-operator `pkg`).


OPERATED = ("Prometheus", "Alertmanager")
_QUEUE = (
    ContainerPort(9090, "http-autometric"),
    ContainerPort(9091, "http-usermetric"),
    ContainerPort(8022, "http-queueadm"),
    ContainerPort(8112, "https-port"),
)
_USER_PORT = 8080
_FIRST_REVISION = "00001"


def _is_reachable(spec: Data) -> bool:
    return spec.get("listenLocal") is not True


OPERATED_FIELDS: Fields = {
    "version": TEXT,
    "listenLocal": FLAG,
    "portName": Field(TEXT, when=_is_reachable, blank=True),
    "thanos": Anything(),
}
"""The fields that are read in the spec of a Prometheus or an Alertmanager, beside those that a pod has too."""


def knative_pod(pod: Pod, revision: str | None) -> Pod:
    """Return the pod of the declared revision of a Knative Service. A revision without a name is the first one."""
    revision_name = revision or f"{pod.name}-{_FIRST_REVISION}"
    labels = {
        "app": revision_name,
        **pod.labels,
        "serving.knative.dev/service": pod.name,
        "serving.knative.dev/configuration": pod.name,
        "serving.knative.dev/revision": revision_name,
    }
    declared = pod.ports or (ContainerPort(_USER_PORT),)
    ports = tuple(replace(port, name="user-port") for port in declared)
    queue = ContainerPort(8013 if any(port.name == "h2c" for port in declared) else 8012, "queue-port")
    return replace(pod, labels=labels, ports=(*ports, queue, *_QUEUE))


def operated(
    kind: str,
    pod: Pod,
    *,
    version: str = "",
    port_name: str = "web",
    listen_local: bool = False,
    thanos: object = None,
) -> Pod:
    """Return the pod of a Prometheus or an Alertmanager."""
    application, number = ("prometheus", 9090) if kind == "Prometheus" else ("alertmanager", 9093)
    labels = {
        **({"app.kubernetes.io/version": version.removeprefix("v")} if version else {}),
        **pod.labels,
        "app.kubernetes.io/name": application,
        "app.kubernetes.io/managed-by": "prometheus-operator",
        "app.kubernetes.io/instance": pod.name,
        application: pod.name,
    }
    ports = [] if listen_local else [ContainerPort(number, port_name)]
    if kind == "Prometheus":
        labels |= {"operator.prometheus.io/name": pod.name, "operator.prometheus.io/shard": "0"}
        ports += [ContainerPort(10902, "http"), ContainerPort(10901, "grpc")] if thanos is not None else []
    else:
        ports += [ContainerPort(9094, "mesh-tcp"), ContainerPort(9094, "mesh-udp", "UDP")]
    ports.append(ContainerPort(8080, "reloader-web"))
    return replace(pod, labels=labels, ports=(*ports, *(port for port in pod.ports if port not in ports)))


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


ACCOUNT: Text[None] = Text("a name", Demand(_account_problems))


def _pod_spec(*, probed: bool = True) -> Fields:
    return {
        "serviceAccountName": given(ACCOUNT, "service_account"),
        # the deprecated name of `serviceAccountName`
        "serviceAccount": Field(ACCOUNT, when=_lacks_account, into="service_account", blank=True),
        "hostNetwork": FLAG,
        **containers(probed=probed),
    }


def _owner(
    *, controller: bool = False, api_version: str = "", kind: str = "", name: str = "", **_: object
) -> Owner | None:
    """Return an owner if it controls the object."""
    return Owner(_owner_kind(api_version, kind), name) if controller else None


def _owner_kind(api_version: str, kind: str) -> str:
    group = group_of(api_version)
    # Other groups have a StatefulSet or Job of their own, which must not count as Kubernetes' own.
    home = canonical_group(group, kind) if group else None
    return kind if not group else world_kind(home, kind) if home is not None else f"{kind}.{group}"


def _last(owners: tuple[Owner | None, ...]) -> Owner | None:
    """Return the owner that controls an object: at most one does."""
    return next((owner for owner in reversed(owners) if owner is not None), None)


def _is_unready(type: str = "", status: str = "") -> bool:  # noqa: A002 - the names in a manifest
    return (type, status) == ("Ready", "False")


LABELS: Fields = {"labels": STRINGS, "annotations": STRINGS}
OWNERS: Of = Field(
    each(
        {
            "controller": FLAG,
            "apiVersion": Field(TEXT, when=_controls),
            "kind": Field(TEXT, required=True, when=_controls),
            "name": Field(TEXT, required=True, when=_controls),
        },
        make=_owner,
        together=_last,
    ),
    into="owner",
)
_STATUS = record(
    {
        "podIPs": each({"ip": ADDRESS}, make=lambda ip=None: ip),
        "podIP": Field(ADDRESS, when=_lacks_addresses),
        "hostIP": ADDRESS,
        "phase": TEXT,
        "conditions": Field(each({"type": TEXT, "status": TEXT}, make=_is_unready, together=any), into="is_unready"),
    }
)
POD = record(
    {
        "status": _STATUS,
        "metadata": record({**LABELS, "ownerReferences": OWNERS, "uid": TEXT, "deletionTimestamp": TEXT}),
        "spec": record(_pod_spec()),
    }
)


def _makes_pods(spec: Record[None]) -> Record[None]:
    return record({"spec": Field(spec, implied=True), "metadata": record({"ownerReferences": OWNERS})})


def _templated(metadata: Fields, *, probed: bool = True) -> Record[None]:
    template = record({"metadata": record({**LABELS, **metadata}), "spec": record(_pod_spec(probed=probed))})
    return record({"template": Field(template, required=True)})


_CONTROLLER = _makes_pods(_templated({}))
_JOB = Field(record({"spec": Field(_templated({}), implied=True)}), implied=True)
# Knative's proxy sends the probes to the container itself.
_KNATIVE = _makes_pods(_templated({"name": Field(TEXT, into="revision")}, probed=False))
_OPERATED = _makes_pods(record({"podMetadata": record(LABELS), **_pod_spec(), **OPERATED_FIELDS}))


# Meaning


def make_pod(
    *,
    containers: tuple[Container, ...] = (),
    init_containers: tuple[Container, ...] = (),
    host_network: bool = False,
    pod_ips: tuple[str | None, ...] = (),
    pod_ip: str | None = None,
    phase: str = "",
    is_unready: bool = False,
    deletion_timestamp: str = "",
    **fields: Any,
) -> Pod:
    """Return a Pod, declared or of a template. It counts as ready if its manifest does not tell."""
    return Pod(
        host_network=host_network,
        # The address of a pod on the host's network is the node's: it does not identify the pod.
        ips=() if host_network else tuple(filter(None, (*pod_ips, pod_ip))),
        finished=phase in ("Succeeded", "Failed"),
        ready=not is_unready and not deletion_timestamp,
        **of_containers(containers, init_containers),
        **fields,
    )


def _controller(kind: str, pod: Callable[..., Pod] = make_pod) -> Callable[..., Controller]:
    """Return the function that makes a controller of the fields of its pod."""

    def make(*, owner: Owner | None = None, span: Span | None = None, **fields: Any) -> Controller:
        return Controller(kind, pod(span=span, **fields), owner, span)

    return make


def _knative(*, revision: str | None = None, **fields: Any) -> Pod:
    return knative_pod(make_pod(**fields), revision)


def _of_config(*, name: str, labels: Mapping[str, str] | None = None, **fields: Any) -> Pod:
    """Return the pod of the first deployment of OpenShift's DeploymentConfig."""
    made = {"deploymentconfig": name, "deployment": f"{name}-1"}
    return make_pod(name=name, labels={**(labels or {}), **made}, **fields)


def _operated(kind: str, **fields: Any) -> Pod:
    own = {name: fields.pop(name) for name in ("version", "port_name", "listen_local", "thanos") if name in fields}
    return operated(kind, make_pod(**fields), **own)


CONTROLLERS: Mapping[str, tuple[Record[None], Callable[..., Controller]]] = {
    **{kind: (_CONTROLLER, _controller(kind)) for kind in CONTROLLER_KINDS},
    "CronJob": (_makes_pods(record({"jobTemplate": _JOB})), _controller("CronJob")),
    "DeploymentConfig": (_CONTROLLER, _controller("DeploymentConfig", _of_config)),
    "KnativeService": (_KNATIVE, _controller("KnativeService", _knative)),
    **{kind: (_OPERATED, _controller(kind, partial(_operated, kind))) for kind in OPERATED},
}
"""The shapes of the kinds that make pods, and the functions that make their objects."""
