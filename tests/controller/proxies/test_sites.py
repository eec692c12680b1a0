from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.authority.authority import Touched
from eastgate.control.enforcement import Enforcement
from eastgate.control.fleet import everything
from eastgate.control.sites import ProxySite
from eastgate.controller.proxies.sites import Sites, bound_site, gateway_site, proxies_of, sidecar_site
from eastgate.envoy.server import ENDPOINTS, Store
from tests.control.seeing import seen
from tests.controller.proxies.pods import (
    Plain,
    authority,
    gateway,
    gateway_deployment,
    gateway_pod,
    pod,
    route,
    service,
)
from tests.controller.proxies.watching import WatchedCluster

_Step: TypeAlias = tuple[list[Plain], list[str], str | None]
_SIDECAR = {"eastgate.dev/proxy": "sidecar"}
_OPENING = {"eastgate.dev/proxy": "bound"}


def _policy(name: str, app: str, caller: str) -> Plain:
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": app}},
            "action": "ALLOW",
            "rules": [{"from": [{"source": {"principals": [f"cluster.local/ns/shop/sa/{caller}"]}}]}],
        },
    }


def _gateway_policy(caller: str) -> Plain:
    target = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "at-gateway", "namespace": "shop"},
        "spec": {
            "targetRefs": [target],
            "action": "ALLOW",
            "rules": [{"from": [{"source": {"principals": [f"cluster.local/ns/shop/sa/{caller}"]}}]}],
        },
    }


def _account(name: str) -> Plain:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "shop"}}


class TestSidecars:
    def _site(self, plain: Plain, *objects: Plain, connected: bool = False) -> Any:
        world = authority(plain, *objects).world
        return sidecar_site(world, f"shop/{plain['metadata']['name']}", connected=connected)

    def test_a_labelled_pod_with_an_address_has_one(self) -> None:
        shop = pod("pay-1", ip="10.0.0.1", ports=(80,), labels={**_SIDECAR, "app": "pay"})
        site = self._site(shop, service("pay", 8080))
        assert (site.address, dict(site.ports)) == ("10.0.0.1", {80: 80, 8080: 8080})
        assert {app.host for app in site.apps.values()} == {"10.0.0.1"}

    @pytest.mark.parametrize(
        "plain",
        [pod("pay-1"), pod("pay-1", ip="10.0.0.1", labels={}), pod("pay-1", ip="10.0.0.1", labels={"a": "sidecar"})],
        ids=["no address", "no label", "another label"],
    )
    def test_others_have_none(self, plain: Plain) -> None:
        assert self._site(plain) is None

    def test_a_running_proxy_counts_with_any_labels(self) -> None:
        assert self._site(pod("pay-1", ip="10.0.0.1", labels={}), connected=True) is not None

    def test_the_pods_of_a_gateway_have_none(self) -> None:
        plain = gateway_pod("gw-1", ip="10.0.0.1")
        plain["metadata"]["labels"] |= _SIDECAR
        assert self._site(plain, gateway(), gateway_deployment()) is None


class TestGateways:
    def test_all_pods_of_a_gateway_share_a_site(self) -> None:
        pods = [gateway_pod("gw-1", ip="10.0.0.1"), gateway_pod("gw-2")]
        world = authority(gateway(port=8443), gateway_deployment(), *pods, pod("gw-3")).world
        site = gateway_site(world, "shop/gw")
        assert site is not None
        assert (site.node, dict(site.ports)) == ("gateway:shop/gw", {8443: 8443})
        assert proxies_of(world, site.node) == ("gateway:shop/gw/gw-1", "gateway:shop/gw/gw-2")
        assert proxies_of(world, "shop/gw-3") == ("shop/gw-3",)

    def test_gateways_of_other_classes_are_ignored(self) -> None:
        assert gateway_site(authority(gateway(class_name="istio")).world, "shop/gw") is None


def _content(store: Store) -> dict[str, dict[tuple[str, str], tuple[str, frozenset[str]]]]:
    return {node: {each.key: (each.version, each.policies) for each in store.resources(node)} for node in store.nodes()}


class _Cluster:
    """A control plane that follows the watches of a cluster. `on_demand`: see `Enforcement`."""

    def __init__(
        self, *objects: Plain, site_of: Callable[..., ProxySite | None] = sidecar_site, on_demand: bool = False
    ) -> None:
        self.watched = WatchedCluster(objects)
        self.authority = self.watched.authority
        self.site_of = site_of
        self.sites = Sites(self.authority.world, site_of)
        self.enforcement = Enforcement(self.authority, Store(), session_key="key", on_demand=on_demand)
        self._follow(everything(self.authority.world))

    def apply(self, put: Iterable[Plain] = (), remove: Iterable[str] = (), again: str | None = None) -> frozenset[str]:
        return self._follow(self.watched.watch(put, remove, again))

    def _follow(self, touched: Touched) -> frozenset[str]:
        return self.enforcement.follow(self.sites.take(touched.change), touched)

    def check(self) -> None:
        """Compare it with a new control plane for the current state."""
        while self.enforcement.renew(2):
            pass
        fresh = _Cluster(*self.watched.objects.values(), site_of=self.site_of, on_demand=True)
        for node in filter(self.enforcement.serves, self.enforcement.sites):
            fresh.enforcement.serve(node)
        assert list(self.seen()) == list(fresh.seen())

    def seen(self) -> Iterator[object]:
        return seen(self.authority, self.enforcement, 80)


_BOUND = partial(bound_site, app_host="127.0.0.1")
_APPS = st.sampled_from(["pay", "cart"])
_PODS = st.builds(
    lambda name, app, account, ip, ready, labelled: pod(
        name,
        account=account,
        ip=f"10.0.0.{ip}" if ip else "",
        labels={"app": app, **labelled},
        ports=(80,) if app == "pay" else (),
        ready=ready,
    ),
    st.sampled_from(["p1", "p2", "p3", "p4"]),
    _APPS,
    st.sampled_from(["default", "a", "b"]),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([{}, _SIDECAR, _SIDECAR, _OPENING]),
)
_PUT = st.one_of(
    _PODS,
    _PODS,
    st.builds(service, _APPS, st.sampled_from([80, 8080])),
    st.builds(gateway_pod, st.sampled_from(["gw-1", "gw-2"]), ip=st.sampled_from(["", "10.0.1.1"])),
    st.builds(gateway, port=st.sampled_from([80, 81]), class_name=st.sampled_from(["eastgate", "eastgate", "other"])),
    st.just(gateway_deployment()),
    st.builds(route, st.sampled_from(["r1", "r2"]), _APPS, port=st.sampled_from([80, 8080])),
    st.builds(_policy, st.sampled_from(["one", "two"]), _APPS, st.sampled_from(["a", "b"])),
    st.builds(_gateway_policy, st.sampled_from(["a", "b"])),
    st.builds(_account, st.sampled_from(["a", "c"])),
)
_REMOVE = st.sampled_from(
    [
        *(f"Pod/shop/{name}" for name in ("p1", "p2", "p3", "p4", "gw-1")),
        *(
            "Service/shop/pay",
            "Service/shop/cart",
            "HTTPRoute/shop/r1",
            "Gateway/shop/gw",
            "Deployment/shop/gw-eastgate",
        ),
        *("AuthorizationPolicy/shop/one", "AuthorizationPolicy/shop/at-gateway", "ServiceAccount/shop/a"),
    ]
)
_AGAIN = st.sampled_from([None, None, "Pod", "AuthorizationPolicy", "Gateway"])
_STEP = st.tuples(st.lists(_PUT, max_size=3), st.lists(_REMOVE, max_size=2), _AGAIN)


class TestFollowing:
    @settings(max_examples=100, deadline=None)
    @given(st.booleans(), st.lists(_PUT, max_size=6), st.lists(_STEP, min_size=1, max_size=5))
    def test_following_publishes_the_same_as_a_new_start(
        self, is_bound: bool, first: list[Plain], steps: list[_Step]
    ) -> None:
        cluster = _Cluster(*first, site_of=_BOUND if is_bound else sidecar_site)
        for step in steps:
            cluster.apply(*step)
            cluster.check()

    @settings(max_examples=100, deadline=None)
    @given(
        st.booleans(),
        st.lists(_PUT, max_size=6),
        st.lists(st.tuples(_STEP, st.sampled_from(["p1", "p2", "p3"]), st.booleans()), min_size=1, max_size=5),
    )
    def test_only_requested_sidecars_are_published(
        self, is_bound: bool, first: list[Plain], steps: list[tuple[_Step, str, bool]]
    ) -> None:
        cluster = _Cluster(*first, site_of=_BOUND if is_bound else sidecar_site, on_demand=True)
        cluster.check()
        for step, asking, is_gone in steps:
            if is_gone:
                cluster.enforcement.release([f"shop/{asking}"])
            else:
                cluster.enforcement.serve(f"shop/{asking}")
            cluster.apply(*step)
            cluster.check()

    def test_a_pod_that_comes_touches_its_callers_endpoints_and_nothing_else(self) -> None:
        pods = [
            pod(f"pay-{number}", ip=f"10.0.0.{number}", ports=(80,), labels={**_OPENING, "app": "pay"})
            for number in range(1, 5)
        ]
        cluster = _Cluster(*pods[:3], service("pay"), site_of=_BOUND)
        store = cluster.enforcement.store
        before = _content(store)
        cluster.apply([pods[3]])
        cluster.check()
        after = _content(store)
        changed = {
            (node, key[0]) for node in before for key in after[node] if after[node][key] != before[node].get(key)
        }
        assert changed == {(f"shop/pay-{number}", ENDPOINTS) for number in (1, 2, 3)}

    def test_a_policy_touches_the_workloads_that_it_targets(self) -> None:
        pods = [pod(app, ip=f"10.0.0.{at}", ports=(80,), labels={**_SIDECAR, "app": app}) for at, app in _NUMBERED]
        cluster = _Cluster(*pods)
        assert cluster.apply([_policy("one", "pay", "a")]) == {"shop/pay"}
        cluster.check()
        assert cluster.apply() == frozenset()

    def test_after_a_change_that_failed_half_way_the_next_one_enforces_both(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pods = [pod(app, ip=f"10.0.0.{at}", ports=(80,), labels={**_SIDECAR, "app": app}) for at, app in _NUMBERED]
        cluster = _Cluster(*pods, service("pay"))
        with monkeypatch.context() as failing:
            failing.setattr(Enforcement, "publish", _fail)
            with pytest.raises(OSError, match="no memory"):
                cluster.apply([_policy("one", "pay", "a"), pod("late", ip="10.0.0.9")], ["Service/shop/pay"])
        cluster.apply([_policy("two", "cart", "b")])
        cluster.check()

    def test_endpoints_that_are_not_ready_are_left_out_unless_none_is(self) -> None:
        labels = {**_OPENING, "app": "pay"}
        up, down = (pod(f"pay-{at}", ip=f"10.0.0.{at}", ports=(80,), labels=labels, ready=at == 1) for at in (1, 2))
        cluster = _Cluster(up, down, service("pay"), site_of=_BOUND)

        def endpoints() -> bytes:
            resources = cluster.enforcement.store.of_type("shop/pay-1", ENDPOINTS)
            return resources["service/shop/pay/80"].body

        assert b"10.0.0.1" in endpoints()
        assert b"10.0.0.2" not in endpoints()
        cluster.apply(remove=["Pod/shop/pay-1"])
        cluster.check()
        remaining = cluster.enforcement.store.of_type("shop/pay-2", ENDPOINTS)
        assert b"10.0.0.2" in remaining["service/shop/pay/80"].body


_NUMBERED = list(enumerate(["pay", "cart"], start=1))


def _fail(*_: object) -> None:
    raise OSError("no memory")
