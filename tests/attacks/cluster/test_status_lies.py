"""A policy that is not in force is never shown in force."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import Any

from eastgate.control.capturing import capture_of
from eastgate.controller.proxies.progress import ProgressState, ReplicaReport
from eastgate.controller.proxies.sites import sidecar_site
from eastgate.controller.status.natively import programmed, progress_at
from eastgate.envoy.config.inbound_port import ANY_PORT
from tests.controller.proxies.pods import Plain, authority, pod
from tests.controller.proxies.test_control import Proxy, _proxy, _replica, _until
from tests.envoy.server.client import run

NAME = "AuthorizationPolicy.security.istio.io/shop/one"
EXCLUDED = "eastgate.dev/exclude-inbound-ports"


def pay(app: str = "pay", **annotations: str) -> Plain:
    labels = {"eastgate.dev/proxy": "sidecar", "app": app}
    made = pod("pay", ip="10.0.0.1", ports=(80,), labels=labels)
    made["metadata"]["annotations"] = annotations
    return made


def policy(*ports: int, app: str = "pay") -> Plain:
    principals = {"from": [{"source": {"principals": ["cluster.local/ns/shop/sa/web"]}}]}
    where = {"to": [{"operation": {"ports": [str(port) for port in ports]}}]} if ports else {}
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "one", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": app}}, "action": "DENY", "rules": [{**principals, **where}]},
    }


def test_a_pod_that_is_selected_anew_has_the_policy_when_its_proxy_says_so() -> None:
    async def test() -> None:
        async with _replica(pay()) as (replica, address):

            def state() -> ProgressState:
                return replica.merged().progress(NAME, 1, "shop/pay", "u").state

            await replica.apply(policy(app="cart"), policies={NAME: 1})
            proxy = Proxy(address, "shop/pay", "pay")
            await proxy.subscribe()
            serving = asyncio.create_task(proxy.serve())
            try:
                await _until(lambda: replica.control.server.is_settled("shop/pay"))
                serving.cancel()  # from now on the proxy receives resources without an answer
                await asyncio.gather(serving, return_exceptions=True)
                await replica.apply(pay("cart"))
                assert not replica.control.server.is_settled("shop/pay")
                assert state() is ProgressState.WAITING
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)
                await proxy.close()
            async with _proxy(address, "shop/pay", "pay"):
                await _until(lambda: state() is ProgressState.ENFORCED)

    run(test())


def test_a_port_that_is_not_redirected_is_not_guarded() -> None:
    async def test() -> None:
        async with _replica(pay(**{EXCLUDED: "9000"})) as (replica, address), _proxy(address, "shop/pay", "pay"):
            expected = {(): "False", (9000,): "False", (80, 9000): "False", (80,): "True"}
            for generation, (ports, status) in enumerate(expected.items(), start=1):
                await replica.apply(policy(*ports), policies={NAME: generation})
                await _until(lambda: replica.control.server.is_settled("shop/pay"))
                report = replica.merged()
                progress = progress_at(["shop/pay"], report, NAME, generation, "u")
                condition = programmed(progress, audit=False)
                assert (ports, condition.status) == (ports, status)
                if status == "False":
                    assert condition.reason == "NotEnforced"
                    assert "port 9000 is not redirected to the proxy" in condition.message
                    assert list(progress.notices())
                own = replica.control.report()
                assert ReplicaReport.from_json(own.to_json()) == own

    run(test())


def test_an_allow_of_nothing_is_not_guarded_there_either() -> None:
    async def test() -> None:
        async with _replica(pay(**{EXCLUDED: "9000"})) as (replica, _address):
            nothing = policy()
            nothing["spec"] = {"selector": {"matchLabels": {"app": "pay"}}}
            await replica.apply(nothing, policies={NAME: 1})
            (passed,) = replica.control.report().proxies["shop/pay"].passed
            assert (passed.port, passed.policies) == (9000, (NAME,))

    run(test())


def test_an_annotation_that_comes_later_opens_no_port() -> None:
    """Traffic of the pod is still redirected: the proxy must not treat a connection to such a port as another port."""
    world = authority(pay(**{EXCLUDED: "8080"}), policy(8080)).world
    site = sidecar_site(world, "shop/pay")
    assert site is not None
    capture: Any = capture_of(site, ANY_PORT, {80: 80, ANY_PORT: ANY_PORT})
    assert {80, 8080} <= set(capture.known)


def test_reports_of_older_replicas_are_read() -> None:
    async def test() -> None:
        async with _replica(pay()) as (replica, _address):
            plain = deepcopy(replica.control.report().to_json())
            for proxy in plain["proxies"].values():
                del proxy["lacking"], proxy["passed"]
            assert ReplicaReport.from_json(plain).proxies

    run(test())
