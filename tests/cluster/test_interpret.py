"""Kubernetes data becomes the world's objects."""

from __future__ import annotations

import pytest

from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import (
    NAME_LABEL,
    ContainerPort,
    Controller,
    Gateway,
    GrantFrom,
    GrantTo,
    Listener,
    ListenerTls,
    Namespace,
    Owner,
    ParentRef,
    Pod,
    ReferenceGrant,
    Route,
    RouteBackend,
    Secret,
    Service,
    ServiceAccount,
    ServicePort,
    StreamRule,
    TlsMode,
    TlsReference,
    interpret,
    object_id,
    uses,
)
from tests.cluster.manifests import manifest, read

GATEWAY = "gateway.networking.k8s.io/v1"


@pytest.mark.parametrize(
    ("api_version", "kind", "used"),
    [
        ("v1", "Namespace", True),
        ("v1", "Pod", True),
        ("v1", "Service", True),
        ("v1", "ServiceAccount", True),
        ("v1", "PersistentVolume", False),
        ("apps/v1", "Deployment", True),
        ("apps/v1beta2", "StatefulSet", True),
        ("extensions/v1beta1", "Deployment", True),
        ("extensions/v1beta1", "DaemonSet", True),
        ("extensions/v1beta1", "Ingress", False),
        ("apps/v1", "ReplicaSet", True),
        ("batch/v1", "Job", True),
        ("batch/v1beta1", "CronJob", True),
        ("apps.kruise.io/v1beta1", "StatefulSet", False),
        ("serving.knative.dev/v1", "Service", True),
        ("argoproj.io/v1alpha1", "Rollout", True),
        ("argoproj.io/v1alpha1", "Service", False),
        ("extensions/v1beta1", "Rollout", False),
        ("discovery.k8s.io/v1", "EndpointSlice", True),
        ("v1", "Deployment", False),
        ("gateway.networking.k8s.io/v1beta1", "Gateway", True),
        ("networking.istio.io/v1", "Gateway", True),
        ("policy.linkerd.io/v1beta3", "HTTPRoute", False),
        ("workload.linkerd.io/v1alpha1", "ExternalWorkload", True),
        ("workload.linkerd.io/v1beta1", "ExternalWorkload", True),
        ("cilium.io/v2", "ExternalWorkload", False),
        ("gateway.networking.k8s.io/v1", "HTTPRoute", True),
        ("gateway.networking.k8s.io/v1alpha2", "TLSRoute", True),
        ("gateway.networking.k8s.io/v1beta1", "ReferenceGrant", True),
        ("gateway.networking.k8s.io/v1", "GatewayClass", False),
        ("", "Pod", True),
    ],
)
def test_kinds_are_told_by_group_and_kind_whatever_the_version(api_version: str, kind: str, used: bool) -> None:
    assert uses(api_version, kind) is used
    assert (object_id(api_version, kind, None, "x") is not None) is used
    if not used:
        reporter = Reporter()
        assert interpret(manifest(api_version, kind, "x", spec="nonsense"), reporter) is None
        assert not reporter.diagnostics


def test_an_object_of_an_old_group_is_the_same_object() -> None:
    old = object_id("extensions/v1beta1", "Deployment", "a", "web")
    assert old == object_id("apps/v1", "Deployment", "a", "web")
    assert read("extensions/v1beta1", "Deployment", "web", "a", spec={"template": {}}).id == old


def test_a_namespace_has_the_label_of_its_name_whatever_is_written() -> None:
    found = read(
        "v1", "Namespace", "prod", metadata={"labels": {"team": "a", NAME_LABEL: "lie"}, "annotations": {"k": "v"}}
    )
    assert found == Namespace("prod", {"team": "a", NAME_LABEL: "prod"}, {"k": "v"})
    assert Namespace("prod").labels == {NAME_LABEL: "prod"}


def test_a_pod() -> None:
    found = read(
        "v1",
        "Pod",
        "reviews-1",
        "shop",
        metadata={
            "labels": {"app": "reviews"},
            "annotations": {"note": "x"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "other"},
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "reviews-5d", "controller": True},
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "another", "controller": False},
            ],
        },
        spec={
            "serviceAccountName": "bookinfo",
            "initContainers": [
                {"name": "setup", "ports": [{"containerPort": 1}]},
                {"name": "proxy", "restartPolicy": "Always", "ports": [{"containerPort": 15020, "name": "stats"}]},
            ],
            "containers": [
                {
                    "name": "a",
                    "ports": [{"containerPort": 9080, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}],
                },
                {"name": "b"},
            ],
            "unknownField": 3,
        },
        status={"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "FD00::0:1"}]},
    )
    assert found == Pod(
        "shop",
        "reviews-1",
        {"app": "reviews"},
        {"note": "x"},
        "bookinfo",
        (ContainerPort(9080, "http"), ContainerPort(53, None, "UDP"), ContainerPort(15020, "stats")),
        ("10.0.0.1", "fd00::1"),
        Owner("ReplicaSet", "reviews-5d"),
        init_ports=(ContainerPort(1),),
    )


@pytest.mark.parametrize(
    ("spec", "account"),
    [
        ({}, "default"),
        ({"serviceAccount": "old"}, "old"),
        ({"serviceAccountName": "new", "serviceAccount": "old"}, "new"),
        ({"serviceAccountName": "", "serviceAccount": "old"}, "old"),
        ({"serviceAccountName": None}, "default"),
    ],
)
def test_the_service_account_of_a_pod(spec: dict[str, object], account: str) -> None:
    pod = read("v1", "Pod", "x", spec=spec)
    assert isinstance(pod, Pod)
    assert (pod.namespace, pod.service_account) == ("default", account)


@pytest.mark.parametrize(
    ("spec", "status", "ips"),
    [
        ({}, {"podIP": "10.0.0.1"}, ("10.0.0.1",)),
        ({}, {}, ()),
        ({}, {"podIPs": []}, ()),
        ({"hostNetwork": True}, {"podIP": "10.0.0.1"}, ()),
    ],
)
def test_the_addresses_that_are_a_pods_own(
    spec: dict[str, object], status: dict[str, object], ips: tuple[str, ...]
) -> None:
    pod = read("v1", "Pod", "x", spec=spec, status=status)
    assert isinstance(pod, Pod)
    assert pod.ips == ips


@pytest.mark.parametrize(
    ("phase", "finished"), [("Running", False), ("Pending", False), ("Succeeded", True), ("Failed", True)]
)
def test_a_pod_that_has_finished(phase: str, finished: bool) -> None:
    pod = read("v1", "Pod", "x", status={"phase": phase})
    assert isinstance(pod, Pod)
    assert pod.finished is finished


@pytest.mark.parametrize(
    ("api_version", "kind", "owner"),
    [
        ("apps/v1", "StatefulSet", Owner("StatefulSet", "o")),
        ("v1", "Node", Owner("Node", "o")),
        ("apps.kruise.io/v1beta1", "StatefulSet", Owner("StatefulSet.apps.kruise.io", "o")),
        ("argoproj.io/v1alpha1", "Rollout", Owner("Rollout", "o")),
        ("serving.knative.dev/v1", "Service", Owner("KnativeService", "o")),
        ("serving.knative.dev/v1", "Revision", Owner("Revision.serving.knative.dev", "o")),
    ],
)
def test_an_owner_of_a_foreign_group_does_not_pass_for_one_of_kubernetes(
    api_version: str, kind: str, owner: Owner
) -> None:
    reference = {"apiVersion": api_version, "kind": kind, "name": "o", "controller": True}
    pod = read("v1", "Pod", "x", metadata={"ownerReferences": [reference]})
    assert isinstance(pod, Pod)
    assert pod.owner == owner


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])
def test_a_controller(kind: str) -> None:
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"serviceAccountName": "sa", "containers": [{"ports": [{"containerPort": 80}]}]},
    }
    found = read("apps/v1", kind, "web", "shop", metadata={"labels": {"not": "these"}}, spec={"template": template})
    pod = Pod("shop", "web", {"app": "a"}, {}, "sa", (ContainerPort(80),))
    assert found == Controller(kind, pod)


def test_a_cron_job_has_its_template_two_levels_down() -> None:
    job = {"metadata": {"labels": {"no": "no"}}, "spec": {"template": {"metadata": {"labels": {"app": "a"}}}}}
    found = read("batch/v1", "CronJob", "nightly", "shop", spec={"jobTemplate": job})
    assert found == Controller("CronJob", Pod("shop", "nightly", {"app": "a"}))


def test_a_service() -> None:
    ports = [
        {"port": 80},
        {"port": 443, "targetPort": 8443, "name": "https"},
        {"port": 53, "targetPort": "dns", "protocol": "UDP"},
        {"port": 81, "targetPort": 0},
        {"port": 82, "targetPort": ""},
    ]
    found = read("v1", "Service", "web", "shop", spec={"selector": {"app": "web"}, "ports": ports, "type": "NodePort"})
    assert found == Service(
        "shop",
        "web",
        {"app": "web"},
        (
            ServicePort(80, 80),
            ServicePort(443, 8443, "https"),
            ServicePort(53, "dns", None, "UDP"),
            ServicePort(81, 81),
            ServicePort(82, 82),
        ),
        "NodePort",
    )
    assert read("v1", "Service", "web", "shop", spec=None) == Service("shop", "web")


def test_an_entry_of_a_secret_may_have_no_value() -> None:
    found = read("v1", "Secret", "keys", "shop", data={"a": "aGk=", "b": None}, stringData={"c": "x", "d": None})
    assert isinstance(found, Secret)
    assert found.data == {"a": b"hi", "c": b"x"}


def test_a_service_account() -> None:
    assert read("v1", "ServiceAccount", "bot", "shop") == ServiceAccount("shop", "bot")


TLS = {"certificateRefs": [{"name": "a"}, {"namespace": "certs", "name": "b"}], "options": {"x.com/a": "b"}}


def test_a_gateway() -> None:
    listeners = [
        {"name": "web", "port": 80, "protocol": "HTTP"},
        {"name": "tls", "port": 443, "protocol": "HTTPS", "hostname": "*.a.com", "tls": TLS},
    ]
    found = read(
        GATEWAY,
        "Gateway",
        "gw",
        "edge",
        metadata={"labels": {"a": "b"}},
        spec={"gatewayClassName": "eg", "listeners": listeners},
    )
    tls = ListenerTls(TlsMode.TERMINATE, (TlsReference("edge", "a"), TlsReference("certs", "b")), {"x.com/a": "b"})
    expected = (Listener("web", 80, "HTTP"), Listener("tls", 443, "HTTPS", "*.a.com", tls=tls))
    assert found == Gateway("edge", "gw", expected, "eg", {"a": "b"})


@pytest.mark.parametrize("kind", ["TCPRoute", "TLSRoute"])
def test_a_route_of_connections(kind: str) -> None:
    parents = [
        {"name": "gw"},
        {"group": "", "kind": "Service", "namespace": "edge", "name": "svc", "port": 80},
        {"name": "gw", "sectionName": "web"},
    ]
    rules = [{"backendRefs": [{"name": "b", "port": 80}]}]
    metadata = {"creationTimestamp": "2020-01-01T00:00:00Z"}
    spec = {"hostnames": ["a.com", "*.b.com"], "parentRefs": parents, "rules": rules}
    found = read(GATEWAY, kind, "r", "shop", metadata=metadata, spec=spec)
    assert found == Route(
        kind,
        "shop",
        "r",
        ("a.com", "*.b.com"),
        (
            ParentRef("shop", "gw"),
            ParentRef("edge", "svc", "", "Service", None, 80),
            ParentRef("shop", "gw", section_name="web"),
        ),
        stream_rules=(StreamRule((RouteBackend("shop", "b", port=80),)),),
        created="2020-01-01T00:00:00.000000+00:00",
    )


def test_a_reference_grant() -> None:
    found = read(
        "gateway.networking.k8s.io/v1beta1",
        "ReferenceGrant",
        "g",
        "backends",
        spec={
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "shop"}],
            "to": [{"group": "", "kind": "Service"}, {"kind": "Secret", "name": "tls"}],
        },
    )
    assert found == ReferenceGrant(
        "backends",
        "g",
        (GrantFrom("gateway.networking.k8s.io", "HTTPRoute", "shop"),),
        (GrantTo("", "Service"), GrantTo("", "Secret", "tls")),
    )


def test_labels_that_kubernetes_would_refuse_are_no_error_here() -> None:
    found = read("v1", "Pod", "x", metadata={"labels": {"not a key!": "not a value!"}})
    assert isinstance(found, Pod)
    assert found.labels == {"not a key!": "not a value!"}


def test_null_is_as_good_as_absent() -> None:
    assert read("v1", "Pod", "x", metadata=None, spec={"containers": None, "hostNetwork": None}) == Pod("default", "x")
