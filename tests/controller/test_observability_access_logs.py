"""Decisions that proxies send: those of a real Envoy, trusted only about that Envoy itself, and limited."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from envoy.config.listener.v3 import listener_pb2
from envoy.service.accesslog.v3 import als_pb2
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from eastgate import Settings
from eastgate.control.access_log import Observation, read_record
from eastgate.controller.certificates.ca_secret import control_plane_names
from eastgate.controller.proxies.control import ProxyControl
from eastgate.envoy.config.bootstrap import ControlPlane, ProxyFiles, pod_bootstrap, secret_sources
from eastgate.envoy.config.capture import capture_resource
from eastgate.envoy.config.connection_listener import closing_connection_listener, connection_listener
from eastgate.envoy.config.inbound_listener import inbound_listener
from eastgate.envoy.config.inbound_port import Capture, InboundPort
from eastgate.envoy.config.request_listener import request_listener
from eastgate.envoy.plan import plan_port
from eastgate.envoy.server import AuthenticatedProxy, Metrics
from eastgate.envoy.server.access_logs import LOG_METHOD, LOG_SERVICE, AccessLogs, node_of_log, record_of_tags
from eastgate.ir import AllowAny, Chain, Is, Layer, OneOf, Origin, Placement, PolicyRef, Refusal, Rule
from eastgate.ir.attributes import IDENTITY
from eastgate.local.machine.envoy import EnvoyProcess
from tests.controller.proxies import test_in_a_cluster
from tests.controller.proxies.test_in_a_cluster import InCluster, Replica, _policy, _run
from tests.patience import PATIENCE
from tests.programs import ApiServer

Record = Mapping[str, Any]
_PROXY = AuthenticatedProxy("shop/cart", "shop/cart")


def message(*tags: Mapping[str, str], node: str = "shop/cart") -> bytes:
    sent = als_pb2.StreamAccessLogsMessage()
    sent.identifier.node.id = node
    for each in tags:
        sent.tcp_logs.log_entry.add().common_properties.custom_tags.update(each)
    content: bytes = sent.SerializeToString()
    return content


def results(metrics: Metrics) -> dict[str, float]:
    return {
        sample.labels["result"]: sample.value
        for metric in metrics.registry.collect()
        for sample in metric.samples
        if sample.name == "eastgate_access_log_messages_total"
    }


def test_a_record_belongs_to_the_proxy_that_sends_it() -> None:
    records: list[Record] = []
    logs = AccessLogs(lambda _proxy, record: records.append(record), Metrics())
    tags = {"eastgate": "connection", "workload": "shop/other", "port": "80", "decision": "200:p#0", "peer": "-"}
    logs.read(logs.open(_PROXY), message(tags))
    observation = read_record(records[0])
    assert observation is not None
    assert (observation.workload, observation.port, observation.peer) == ("shop/cart", 80, None)


def test_a_denied_connection_is_named_by_its_filter_chain() -> None:
    tags = {"eastgate": "connection", "port": "-", "denied": "403:none-of-1", "address": "10.0.0.1:9", "source": "-"}
    observation = read_record(record_of_tags(tags, "shop/cart"))
    assert observation is not None
    assert (observation.allowed, observation.decision, observation.source) == (False, "403:none-of-1", "10.0.0.1:9")


def test_an_unreadable_record_is_counted_and_ends_nothing() -> None:
    metrics = Metrics()
    records: list[Record] = []
    logs = AccessLogs(lambda _proxy, record: records.append(record), metrics)
    stream = logs.open(_PROXY)
    for body in (b"\xff\xff", message({"eastgate": "connection"})):
        logs.read(stream, body)
    assert results(metrics) == {"unreadable": 1, "read": 1}
    assert node_of_log(b"\xff\xff") == ""


def test_no_more_than_a_share_of_time_is_spent_on_them() -> None:
    now, metrics = 0.0, Metrics()

    def take_long(_proxy: AuthenticatedProxy, _record: Record) -> None:
        nonlocal now
        now += 1.0

    logs = AccessLogs(take_long, metrics, share=0.1, clock=lambda: now)
    stream = logs.open(_PROXY)
    for _ in range(3):
        logs.read(stream, message({"eastgate": "connection"}))
    assert results(metrics) == {"read": 1, "dropped": 2}
    now += 10.0
    logs.read(stream, message({"eastgate": "connection"}))
    assert results(metrics) == {"read": 2, "dropped": 2}


@pytest.mark.parametrize("entries", [1, 1000], ids=["many messages", "large messages"])
def test_a_flood_from_one_proxy_hides_no_record_of_another(entries: int) -> None:
    now, read = 0.0, dict.fromkeys(("shop/cart", "shop/web"), 0)

    def take_a_while(proxy: AuthenticatedProxy, _record: Record) -> None:
        nonlocal now
        now += 0.001
        read[proxy.name] += 1

    logs = AccessLogs(take_a_while, Metrics(), share=0.1, clock=lambda: now)
    flooding, other = logs.open(_PROXY), logs.open(AuthenticatedProxy("shop/web", "shop/web"))
    flood, denial = message(*[{"eastgate": "connection"}] * entries), message({"eastgate": "denial"})
    for _ in range(50):
        for _ in range(2000 // entries):
            logs.read(flooding, flood)
            now += 0.0001
        logs.read(other, denial)
    assert read["shop/web"] == 50
    assert read["shop/cart"] >= (now - 1.0) * 0.1 / 0.001 * 0.9  # and the flood gets the rest of the time


def test_the_streams_of_a_proxy_that_is_gone_are_not_heard() -> None:
    logs = AccessLogs(lambda _proxy, _record: None, Metrics())
    mine, other = logs.open(_PROXY), logs.open(AuthenticatedProxy("shop/web", "shop/web"))
    logs.revoke("shop/cart")
    assert (mine.is_revoked, other.is_revoked) == (True, False)
    logs.close(mine)
    logs.close(other)


# With a real Envoy


@pytest.fixture
def cluster(api_server: ApiServer, tmp_path: Path) -> InCluster:
    api_server.install("eastgate")
    return InCluster(api_server, tmp_path)


async def start_pod(replica: Replica, name: str) -> EnvoyProcess:
    """Start the Envoy of a pod like a kubelet, with its token in a file."""
    folder, node = replica.cluster.folder, replica.cluster.node(name)
    files = ProxyFiles(str(folder / "token"), str(folder / "ca.crt"), str(folder), None)
    (folder / "token").write_text(replica.cluster.token(name))
    (folder / "ca.crt").write_text(replica.ca.source.bundles.pem("cluster.local"))
    for file, content in secret_sources(files).items():
        (folder / file).write_text(json.dumps(content))
    plane = ControlPlane("127.0.0.1", replica.ports[0], control_plane_names("cluster.local")[0])
    process = await EnvoyProcess.start(
        pod_bootstrap(plane, files, node=node), node, on_record=lambda _: None, on_log=print
    )
    replica._running.append(process)
    return process


@pytest.mark.apiserver
@pytest.mark.real
def test_the_decisions_of_a_real_proxy_arrive(cluster: InCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Observation] = []

    def on_record(proxy: AuthenticatedProxy, record: Record) -> None:
        assert proxy.name == cluster.node("pay")
        if (observation := read_record(record)) is not None:
            seen.append(observation)

    monkeypatch.setattr(test_in_a_cluster, "ProxyControl", partial(ProxyControl, on_record=on_record))

    async def test() -> None:
        async with cluster.run() as replica:
            await asyncio.to_thread(cluster.server.apply, _policy(cluster.namespace, "caller"))
            await start_pod(replica, "pay")
            await replica.control.server.wait_settled(cluster.node("pay"), PATIENCE)
            await replica.until_call("caller", 200)
            assert await replica.call("pay") in (403, None)
            await replica.until(lambda: {each.allowed for each in seen} == {True, False})

    _run(test())
    assert {(each.workload, each.port) for each in seen} == {(cluster.node("pay"), cluster.port)}
    policy = f"AuthorizationPolicy.gateway.networking.x-k8s.io/{cluster.namespace}/pay"
    allowed = [each for each in seen if each.allowed]
    assert {each.who for each in allowed} == {f"{policy}#0"}
    assert {each.peer for each in allowed} == {cluster.identity("caller")}
    assert [each.who for each in seen if not each.allowed] == ["none-of-1"]


@pytest.mark.apiserver
@pytest.mark.real
def test_records_of_other_clients_are_refused(cluster: InCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Record] = []
    heard = partial(ProxyControl, on_record=lambda _proxy, record: seen.append(record))
    monkeypatch.setattr(test_in_a_cluster, "ProxyControl", heard)

    async def send(replica: Replica, token: str | None, node: str, frames: int) -> grpc.StatusCode:
        """Send a message and the end of the stream. grpc.aio may report a late message as an own error."""
        roots = replica.ca.source.bundles.pem("cluster.local").encode()
        name = (("grpc.ssl_target_name_override", control_plane_names("cluster.local")[0]),)
        credentials = grpc.ssl_channel_credentials(roots)
        async with grpc.aio.secure_channel(f"127.0.0.1:{replica.ports[0]}", credentials, name) as channel:
            shown = (("authorization", f"Bearer {token}"),) if token is not None else None
            call: Any = channel.stream_unary(f"/{LOG_SERVICE}/{LOG_METHOD}")(metadata=shown)
            if frames > 0:
                await call.write(message({"eastgate": "connection", "decision": "200:p#0"}, node=node))
            if frames > 1:
                await call.done_writing()
            code: grpc.StatusCode = await call.code()
            return code

    async def test() -> None:
        async with cluster.run() as replica:
            pay, caller = cluster.node("pay"), cluster.node("caller")
            for token, frames in ((None, 0), ("nonsense", 0), (cluster.token("caller"), 1)):
                assert await send(replica, token, pay, frames) is grpc.StatusCode.UNAUTHENTICATED
            assert seen == []
            await send(replica, cluster.token("caller"), caller, 2)
            await replica.until(lambda: [record["workload"] for record in seen] == [caller])

    _run(test())


# The configuration


def sent_logs(part: Any) -> set[bytes]:
    """Yield the configurations of sent logs, at any depth of a message."""
    if isinstance(part, AnyMessage):
        kind = descriptor_pool.Default().FindMessageTypeByName(part.TypeName())
        unpacked = message_factory.GetMessageClass(kind)()
        part.Unpack(unpacked)
        return {part.value} if "GrpcAccessLogConfig" in part.type_url else sent_logs(unpacked)
    if not isinstance(part, Message):
        return set()
    inside = (value if isinstance(value, Iterable) else [value] for _, value in part.ListFields())
    return {log for values in inside for value in values for log in sent_logs(value)}


def listeners(inbound: InboundPort, closed_for: str) -> Iterator[Any]:
    """Return the listeners of a port with an allowing rule and a closing reason."""
    policy = PolicyRef("AuthorizationPolicy", "shop", closed_for)
    rule = Rule(Is(IDENTITY, OneOf(frozenset({f"spiffe://td/ns/shop/sa/{closed_for}"}))), Origin(policy, 0))
    layer = Layer(Placement(None, "l"), Chain((AllowAny(closed_for, (rule,), Refusal.CLOSED),)))
    plan = plan_port((layer,), inbound.port, Settings.from_mapping({"trustDomain": "td"}))
    yield inbound_listener(inbound)
    yield connection_listener(inbound, plan)
    yield closing_connection_listener(inbound)
    yield request_listener(inbound)
    if inbound.capture is not None:
        yield listener_pb2.Listener.FromString(capture_resource(inbound).body)


@pytest.mark.parametrize("sends_logs", [True, False])
def test_a_proxy_has_two_streams_with_any_ports_and_policies(sends_logs: bool) -> None:
    captured = Capture(("10.0.0.1",), (80,))
    ports = [
        InboundPort("shop/cart", "127.0.0.1", 80, 80, sends_logs=sends_logs),
        InboundPort("shop/web", "127.0.0.1", 8080, 8080, sends_logs=sends_logs),
        InboundPort("shop/web", "127.0.0.1", 0, 0, sends_logs=sends_logs, capture=captured),
    ]
    built = [listener for port in ports for name in ("a", "b") for listener in listeners(port, name)]
    assert len({log for listener in built for log in sent_logs(listener)}) == (2 if sends_logs else 0)
    assert all(listener.HasField("metadata") is sends_logs for listener in built if listener.name != "capture")
