"""One replica with clients that act as proxies."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from eastgate.control.identity import EmbeddedCa
from eastgate.controller.proxies.control import ProxyControl
from eastgate.controller.proxies.progress import MeshReport, ProgressState, merge
from eastgate.controller.proxies.token_reviews import PodAuthenticator
from eastgate.controller.proxies.tracking import PodIdentity
from eastgate.envoy.server import (
    CLUSTER,
    EXTENSION,
    LISTENER,
    SECRET,
    AuthenticationError,
    ProxyCredentials,
    ProxyStatus,
    ResourceStatus,
)
from eastgate.envoy.server.status import combine
from tests.controller.proxies.pods import (
    Plain,
    authority,
    change,
    gateway,
    gateway_deployment,
    gateway_pod,
    pod,
    route,
    service,
)
from tests.envoy.server.client import Client, run
from tests.patience import PATIENCE

_LABELS = {"eastgate.dev/proxy": "sidecar", "app": "pay"}
_PAY = pod("pay", ip="10.0.0.1", ports=(80,), labels=_LABELS)
_NAME = "AuthorizationPolicy.security.istio.io/shop/one"


def _policy(caller: str) -> Plain:
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "one", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "pay"}},
            "rules": [{"from": [{"source": {"principals": [f"cluster.local/ns/shop/sa/{caller}"]}}]}],
        },
    }


class _ByName:
    """Accepts the name of a pod and its account as a token."""

    def may_prove(self, credentials: ProxyCredentials) -> bool:
        return bool(credentials.token)

    async def prove(self, credentials: ProxyCredentials) -> PodIdentity:
        name, _, account = credentials.token.partition(":")
        if not name:
            raise AuthenticationError("no")
        return PodIdentity("shop", name, f"uid-{name}", account or "default")


class Replica:
    """A replica that listens on a socket."""

    def __init__(self, *objects: Plain) -> None:
        self.authority = authority(*objects)
        self.ca = EmbeddedCa("cluster.local")
        authenticator = PodAuthenticator(lambda: self.authority.world, [_ByName()])
        self.control = ProxyControl(self.authority, authenticator, self.ca, replica="one", session_key="key")

    async def apply(self, *put: Plain, remove: tuple[str, ...] = (), policies: dict[str, int] | None = None) -> None:
        with self.control.lock:
            touched = change(self.authority, put, remove)
        await self.control.follow(touched, {name: (generation, "u") for name, generation in (policies or {}).items()})

    def merged(self) -> MeshReport:
        return merge([self.control.report()])


@asynccontextmanager
async def _replica(*objects: Plain) -> AsyncIterator[tuple[Replica, str]]:
    replica = Replica(*objects)
    with tempfile.TemporaryDirectory(prefix="eg") as folder:
        address = f"unix:{folder}/ads"
        async with replica.control:
            await replica.control.start([(address, None)])
            yield replica, address


class Proxy(Client):
    """A client that acts as a proxy, and accepts or rejects its resources."""

    async def subscribe(self) -> None:
        await self.say(CLUSTER)
        await self.say(LISTENER)

    async def serve(self, *, rejects: str = "") -> None:
        """Answer every update: reject extensions with this text in their names, and accept the others."""
        asked: set[tuple[str, str]] = set()
        while True:
            response = await self.hear(PATIENCE)
            named = [resource.name for resource in response.resources]
            bad = response.type_url == EXTENSION and rejects and any(rejects in name for name in named)
            await self.reply(response, "no" if bad else None)
            if response.type_url == LISTENER:
                ports = {name.rpartition("/")[2] for name in named}
                wanted = {(EXTENSION, f"{port}/connections") for port in ports if port.isdigit()}
                wanted |= {(SECRET, "svid"), (SECRET, "trust")}
                for type_url, name in sorted(wanted - asked):
                    asked.add((type_url, name))
                    await self.say(type_url, name)


@asynccontextmanager
async def _proxy(address: str, node: str, token: str, *, rejects: str = "") -> AsyncIterator[Proxy]:
    proxy = Proxy(address, node, token)
    await proxy.subscribe()
    serving = asyncio.create_task(proxy.serve(rejects=rejects))
    try:
        yield proxy
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await proxy.close()


async def _until(holds: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.01)


class TestProgress:
    def test_a_policy_is_enforced_once_the_proxy_has_acknowledged_it(self) -> None:
        async def test() -> None:
            async with _replica(_PAY) as (replica, address):
                await replica.apply(_policy("a"), policies={_NAME: 1})

                def state(generation: int) -> ProgressState:
                    return replica.merged().progress(_NAME, generation, "shop/pay", "u").state

                assert state(1) is ProgressState.DISCONNECTED
                proxy = Proxy(address, "shop/pay", "pay")
                await proxy.subscribe()
                await proxy.hear()
                assert state(1) is ProgressState.WAITING
                await proxy.close()
                async with _proxy(address, "shop/pay", "pay"):
                    await _until(lambda: state(1) is ProgressState.ENFORCED)
                    await replica.apply(_policy("b"), policies={_NAME: 2})
                    assert state(2) in (ProgressState.WAITING, ProgressState.ENFORCED)
                    await _until(lambda: state(2) is ProgressState.ENFORCED)
                    assert state(3) is ProgressState.NOT_APPLIED
                await _until(lambda: state(2) is ProgressState.DISCONNECTED)

        run(test())

    def test_a_policy_elsewhere_does_not_unsettle_one_that_is_enforced(self) -> None:
        async def test() -> None:
            other = pod("cart", ip="10.0.0.2", ports=(80,), labels={**_LABELS, "app": "cart"})
            async with _replica(_PAY, other) as (replica, address), _proxy(address, "shop/pay", "pay"):
                await replica.apply(_policy("a"), policies={_NAME: 1})
                await _until(lambda: replica.merged().progress(_NAME, 1, "shop/pay").enforced)
                elsewhere = _policy("a")
                elsewhere["metadata"]["name"] = "two"
                elsewhere["spec"]["selector"]["matchLabels"]["app"] = "cart"
                await replica.apply(elsewhere, policies={f"{_NAME[:-3]}two": 1})
                assert replica.merged().progress(_NAME, 1, "shop/pay").enforced

        run(test())


class TestSites:
    def test_the_stream_of_a_pod_ends_with_it(self) -> None:
        async def test() -> None:
            async with _replica(_PAY) as (replica, address), _proxy(address, "shop/pay", "pay") as proxy:
                await _until(lambda: replica.control.server.is_settled("shop/pay"))
                await replica.apply(remove=("Pod/shop/pay",))
                assert (await proxy.code()).name == "UNAUTHENTICATED"
                assert replica.control.report().proxies == {}
                assert not replica.control.store.has_node("shop/pay")

        run(test())

    def test_a_proxy_that_connects_gets_its_resources_though_its_pod_has_no_label(self) -> None:
        async def test() -> None:
            plain = pod("pay", ip="10.0.0.1", ports=(80,), labels={"app": "pay"})
            async with _replica(plain) as (replica, address):
                assert replica.control.enforcement.nodes == ()
                async with _proxy(address, "shop/pay", "pay"):
                    await _until(lambda: "shop/pay" in replica.control.enforcement.nodes)
                    await _until(lambda: replica.control.server.is_settled("shop/pay"))
                    assert {name for _, name in _keys(replica, "shop/pay", SECRET)} == {"svid", "trust"}

        run(test())

    def test_nothing_is_computed_for_a_proxy_that_has_not_connected_here(self) -> None:
        async def test() -> None:
            other = pod("other", ip="10.0.0.2", ports=(80,), labels=_LABELS)
            async with _replica(_PAY, other) as (replica, address), _proxy(address, "shop/pay", "pay"):
                await _until(lambda: replica.control.server.is_settled("shop/pay"))
                await replica.apply(_policy("a"), service("pay", 80), policies={_NAME: 1})
                await _until(lambda: replica.merged().progress(_NAME, 1, "shop/pay").enforced)
                replica.ca.prepare_root()
                assert replica.control.store.nodes() == ("shop/pay",)
                assert replica.merged().progress(_NAME, 1, "shop/other").state is ProgressState.DISCONNECTED
                async with _proxy(address, "shop/other", "other"):
                    await _until(lambda: replica.merged().progress(_NAME, 1, "shop/other").enforced)
                    assert {name for _, name in _keys(replica, "shop/other", SECRET)} == {"svid", "trust"}

        run(test())

    def test_a_pod_of_the_same_name_gets_all_of_it_again(self) -> None:
        async def test() -> None:
            async with _replica(_PAY) as (replica, address):
                async with _proxy(address, "shop/pay", "pay"):
                    await _until(lambda: replica.control.server.is_settled("shop/pay"))
                await replica.apply(remove=("Pod/shop/pay",))
                await replica.apply(_PAY)
                assert not replica.control.store.has_node("shop/pay")
                async with _proxy(address, "shop/pay", "pay"):
                    await _until(lambda: replica.control.server.is_settled("shop/pay"))
                    assert {name for _, name in _keys(replica, "shop/pay", SECRET)} == {"svid", "trust"}

        run(test())

    def test_a_label_that_is_taken_away_does_not_leave_a_running_proxy_behind(self) -> None:
        async def test() -> None:
            async with _replica(_PAY) as (replica, address), _proxy(address, "shop/pay", "pay"):
                await _until(lambda: replica.control.server.is_settled("shop/pay"))
                await replica.apply(pod("pay", ip="10.0.0.1", ports=(80,), labels={"app": "pay"}))
                await replica.apply(_policy("a"), policies={_NAME: 1})
                await _until(lambda: replica.merged().progress(_NAME, 1, "shop/pay").enforced)

        run(test())

    def test_secrets_follow_the_account_and_the_roots(self) -> None:
        async def test() -> None:
            async with _replica(_PAY) as (replica, _):
                await replica.control.serve("shop/pay")
                svid = replica.control.store.of_type("shop/pay", SECRET)["svid"]
                trust = replica.control.store.of_type("shop/pay", SECRET)["trust"]
                moved = pod("pay", ip="10.0.0.9", ports=(80,), labels=_LABELS, account="other")
                await replica.apply(moved)
                assert replica.control.store.of_type("shop/pay", SECRET)["svid"] != svid
                replica.ca.prepare_root()
                assert replica.control.store.of_type("shop/pay", SECRET)["trust"] != trust

        run(test())


class TestLog:
    def test_proxies_and_closed_ports_have_one_line_for_each_change(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "eastgate")

        async def test() -> None:
            async with AsyncExitStack() as last, _replica(_PAY) as (replica, address):
                await replica.apply(_policy("a"), policies={_NAME: 1})
                async with _proxy(address, "shop/pay", "pay", rejects="connections"):
                    await _until(lambda: ("shop/pay", 80) in replica.control.enforcement.closed)
                    await replica.apply(_policy("a"), policies={_NAME: 2})  # which changes nothing
                    await _until(lambda: replica.control.server.is_settled("shop/pay"))
                await _until(lambda: replica.control.server.summary("shop/pay").connected_since is None)  # type: ignore[union-attr]
                proxy = await last.enter_async_context(_proxy(address, "shop/pay", "pay"))
                for name in ("attributes", "fields", "requests", "values"):
                    await proxy.say(EXTENSION, f"80/{name}")
                await replica.apply(_policy("b"), policies={_NAME: 3})
                await _until(lambda: ("shop/pay", 80) not in replica.control.enforcement.closed)
                await _until(lambda: replica.control.server.is_settled("shop/pay"))

        run(test())
        place = {"workload": "shop/pay", "namespace": "shop"}
        lines = [record for record in caplog.records if record.name == "eastgate.controller.proxies.control"]
        proxies = [record for record in lines if record.getMessage().startswith("the proxy shop/pay is ")]
        assert [(record.levelname, record.getMessage()) for record in proxies] == [
            ("INFO", "the proxy shop/pay is connected"),
            ("INFO", "the proxy shop/pay is lost"),
            ("INFO", "the proxy shop/pay is connected"),  # a proxy is not lost if the replica stops
        ]
        assert all({"proxy": "shop/pay", **place}.items() <= vars(record).items() for record in proxies)
        at_80 = [record for record in lines if vars(record).get("port") == 80]
        assert [record.levelname for record in at_80] == ["WARNING", "INFO"]
        assert at_80[0].getMessage().startswith("shop/pay port 80 is closed: its proxy rejected the ")
        assert at_80[1].getMessage() == "shop/pay port 80 is open again"
        assert all(place.items() <= vars(record).items() for record in at_80)
        assert "AuthorizationPolicy" in str(vars(at_80[0])["policies"])

    def test_a_port_that_is_gone_is_not_open_again(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "eastgate")

        async def test() -> None:
            async with _replica(_PAY) as (replica, address):
                await replica.apply(_policy("a"), policies={_NAME: 1})
                async with _proxy(address, "shop/pay", "pay", rejects="connections"):
                    await _until(lambda: ("shop/pay", 80) in replica.control.enforcement.closed)
                    await _until(lambda: replica.control.server.is_settled("shop/pay"))
                    await replica.apply(pod("pay", ip="10.0.0.1", ports=(81,), labels=_LABELS))
                    assert ("shop/pay", 80) not in replica.control.enforcement.closed
                    await replica.apply(remove=("Pod/shop/pay",))
                    assert not replica.control.enforcement.closed

        run(test())
        messages = [record.getMessage() for record in caplog.records]
        assert [message for message in messages if "is closed" in message]
        assert not [message for message in messages if "is open again" in message]


def _keys(replica: Replica, node: str, type_url: str) -> set[tuple[str, str]]:
    return {(type_url, name) for name in replica.control.store.of_type(node, type_url)}


_GATEWAY = (
    gateway(port=8080),
    gateway_deployment(),
    gateway_pod("gw-1"),
    gateway_pod("gw-2"),
    service("pay"),
    route("r1", "pay"),
    _PAY,
)


class TestGateways:
    def test_pods_of_a_gateway_share_resources_and_a_rejection_closes_all(self) -> None:
        async def test() -> None:
            first, second = "gateway:shop/gw/gw-1", "gateway:shop/gw/gw-2"
            async with (
                _replica(*_GATEWAY) as (replica, address),
                _proxy(address, first, "gw-1:gw"),
                _proxy(address, second, "gw-2:gw", rejects="connections"),
            ):
                server = replica.control.server
                await _until(lambda: ("gateway:shop/gw", 8080) in replica.control.enforcement.closed)
                await _until(lambda: server.is_settled(first) and server.is_settled(second))
                report = replica.control.report()
                assert {report.proxies[name].node for name in (first, second)} == {"gateway:shop/gw"}
                assert [closed.port for closed in report.proxies[first].closed] == [8080]
                assert report.proxies[second].rejected
                assert not report.proxies[first].rejected

        run(test())

    def test_it_counts_all_pods_that_should_be_there(self) -> None:
        async def test() -> None:
            async with _replica(*_GATEWAY) as (replica, _):
                assert replica.merged().by_node["gateway:shop/gw"] == ("gateway:shop/gw/gw-1", "gateway:shop/gw/gw-2")

        run(test())


def test_the_worst_progress_of_several_proxies_counts() -> None:
    def status(name: str, accepted: str | None) -> ProxyStatus:
        return ProxyStatus(name, None, settled=True, resources=(ResourceStatus(LISTENER, "a", "2", accepted, None),))

    ready, waiting = status("p", "2"), status("r", "1")
    assert combine("n", []) is None
    for statuses, accepted in (([ready], "2"), ([ready, waiting], "1"), ([waiting, ready], "1")):
        combined = combine("n", statuses)
        assert combined is not None
        assert [resource.accepted for resource in combined.resources] == [accepted]
