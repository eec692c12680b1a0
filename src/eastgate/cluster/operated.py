"""Pods that operators make: what Knative and the Prometheus operator add to what somebody wrote.

The labels and ports are those of their sources (knative/serving `pkg/reconciler`, prometheus-operator `pkg`).
"""

from __future__ import annotations

from dataclasses import replace

from eastgate.cluster.fields import Data
from eastgate.cluster.pods import ContainerPort, Pod
from eastgate.cluster.shapes import FLAG, TEXT, Fields
from eastgate.reading.manifests.shapes.shape import Anything, Field

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
"""The fields that are read in the spec of a Prometheus or an Alertmanager, beside those in common with a pod's."""


def knative_pod(pod: Pod, revision: str | None) -> Pod:
    """Return the pod of the declared revision of a Knative Service; without a name it is the first one."""
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
