from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.authority.authority import Authority
from eastgate.control.identity import EmbeddedCa
from eastgate.controller.proxies.token_reviews import PodAuthenticator, SvidProofs, TokenReviews, read_review
from eastgate.envoy.server import AuthenticatedProxy, AuthenticationError, ProxyCredentials, UnavailableError
from eastgate.reading.kubernetes import ApiError, JsonObject, Resource, UnreachableError
from tests.controller.proxies.pods import (
    authority,
    gateway,
    gateway_deployment,
    gateway_pod,
    pod,
    reviewed,
    token,
)

_PROXY = AuthenticatedProxy("shop/pay-1", "shop/pay-1")


class FakeApi:
    """An API server with configured answers or failures."""

    def __init__(self, answer: JsonObject | Exception) -> None:
        self.answer = answer
        self.asked: list[Mapping[str, Any]] = []

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> JsonObject:
        assert resource.plural == "tokenreviews"
        self.asked.append(obj["spec"])
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Setup:
    """An authenticator, its world, its API server and its clock."""

    def __init__(self, answer: JsonObject | Exception, *objects: dict[str, Any]) -> None:
        self.authority: Authority = authority(pod("pay-1"), pod("other", account="thief"), *objects)
        self.api = FakeApi(answer)
        self.now = 1000.0
        reviews = TokenReviews(self.api, lambda: self.authority.world, lambda: self.now)
        self.authenticator = PodAuthenticator(lambda: self.authority.world, [reviews])

    def connect(self, shown: str, node: str = "shop/pay-1") -> AuthenticatedProxy:
        credentials = ProxyCredentials(shown)
        if not self.authenticator.may_authenticate(credentials):
            raise AuthenticationError("not even read")
        return asyncio.run(self.authenticator.authenticate(credentials, node))


class TestTokens:
    def test_a_pod_is_the_proxy_that_its_token_was_issued_to(self) -> None:
        setup = Setup(reviewed("pay-1"))
        assert setup.connect(token("pay-1")) == _PROXY
        assert setup.api.asked == [{"token": token("pay-1"), "audiences": ["eastgate"]}]

    def test_a_stolen_node_id_is_refused(self) -> None:
        setup = Setup(reviewed("other", account="thief"))
        with pytest.raises(AuthenticationError, match="the token belongs to shop/other"):
            setup.connect(token("other", account="thief"), node="shop/pay-1")

    def test_the_claims_of_a_token_do_not_count(self) -> None:
        # A forged token names another pod; the API server returns the real one.
        setup = Setup(reviewed("other", account="thief"))
        with pytest.raises(AuthenticationError, match="the token belongs to shop/other"):
            setup.connect(token("pay-1"))

    @pytest.mark.parametrize(
        ("shown", "asks"),
        [
            ("", False),
            ("a.b.c", False),
            ("opaque", False),
            (token("pay-1", exp=999.0), False),
            (token("pay-1", aud=["https://kubernetes.default.svc"]), False),
            (token("pay-1", bound={"namespace": "shop", "serviceaccount": {"name": "default"}}), False),
            (token("gone"), False),
            (token("pay-1", uid="uid-before"), False),
            (token("pay-1", account="thief"), False),
            (token("pay-1", namespace="else"), False),
        ],
        ids=["none", "no JWT", "opaque", "expired", "audience", "no pod", "deleted", "uid", "account", "namespace"],
    )
    def test_a_token_that_cannot_belong_to_a_pod_is_refused_without_a_review(self, shown: str, asks: bool) -> None:
        setup = Setup(reviewed("pay-1"))
        with pytest.raises(AuthenticationError):
            setup.connect(shown)
        assert bool(setup.api.asked) is asks

    @pytest.mark.parametrize(
        "answer",
        [
            {},
            {"status": {}},
            {"status": {"authenticated": False, "error": "expired"}},
            {"status": {"authenticated": "true"}},
            reviewed("pay-1", audiences=()),
            reviewed("pay-1", audiences=("api",)),
            reviewed("pay-1", bound=False),
            reviewed("pay-1", uid="uid-before"),
            reviewed("pay-1", account="thief"),
            reviewed("gone"),
            {"status": {**reviewed("pay-1")["status"], "user": {"username": "system:admin"}}},
        ],
        ids=[
            *("nothing", "empty", "expired", "not a boolean", "no audience", "audience", "not bound", "uid", "account"),
            *("deleted", "no account"),
        ],
    )
    def test_a_token_that_the_api_server_rejects_is_refused(self, answer: JsonObject) -> None:
        with pytest.raises(AuthenticationError):
            Setup(answer).connect(token("pay-1"))

    @pytest.mark.parametrize("failure", [UnreachableError("no route"), ApiError(403, "Forbidden", "no")])
    def test_without_an_answer_no_proxy_is_admitted_and_nothing_is_cached(self, failure: Exception) -> None:
        setup = Setup(failure)
        with pytest.raises(UnavailableError):
            setup.connect(token("pay-1"))
        setup.api.answer = reviewed("pay-1")
        assert setup.connect(token("pay-1")) == _PROXY

    def test_an_answer_is_kept_briefly_and_never_past_the_end_of_the_token(self) -> None:
        setup = Setup(reviewed("pay-1"))
        setup.connect(token("pay-1", exp=1030.0))
        setup.now = 1029.0
        setup.connect(token("pay-1", exp=1030.0))
        assert len(setup.api.asked) == 1
        setup.now = 1031.0
        with pytest.raises(AuthenticationError):
            setup.connect(token("pay-1", exp=1030.0))
        setup.now = 1000.0
        setup.connect(token("pay-1"))
        setup.now = 1061.0
        setup.connect(token("pay-1"))
        assert len(setup.api.asked) == 3

    def test_a_kept_answer_does_not_outlive_the_pod(self) -> None:
        setup = Setup(reviewed("pay-1"))
        setup.connect(token("pay-1"))
        setup.authority.update(remove=["Pod/shop/pay-1"])
        with pytest.raises(AuthenticationError, match="there is no pod"):
            setup.connect(token("pay-1"))

    def test_a_pod_that_is_deleted_while_its_token_is_reviewed_is_refused(self) -> None:
        setup = Setup(reviewed("pay-1"))
        create = setup.api.create

        async def create_late(resource: Resource, obj: Mapping[str, Any]) -> JsonObject:
            setup.authority.update(remove=["Pod/shop/pay-1"])
            return await create(resource, obj)

        setup.api.create = create_late  # type: ignore[method-assign]
        with pytest.raises(AuthenticationError, match="there is no pod"):
            setup.connect(token("pay-1"))

    @given(st.text(), st.binary(max_size=60))
    def test_any_text_is_refused_and_none_breaks(self, text: str, body: bytes) -> None:
        reviews = TokenReviews(FakeApi({}), lambda: authority().world)
        assert not reviews.may_prove(ProxyCredentials(text))
        assert not reviews.may_prove(ProxyCredentials(f"a.{body.hex()}.c"))

    @given(st.recursive(st.none() | st.booleans() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2)))
    def test_a_review_without_a_user_proves_nothing(self, user: object) -> None:
        with pytest.raises(AuthenticationError):
            read_review({"status": {"authenticated": True, "audiences": ["eastgate"], "user": {"username": user}}})


class TestRevoking:
    @pytest.mark.parametrize(
        ("put", "removed"),
        [((), ["Pod/shop/pay-1"]), ((pod("pay-1", uid="uid-new"),), []), ((pod("pay-1", account="thief"),), [])],
        ids=["deleted", "created anew", "another account"],
    )
    def test_the_proxy_of_a_pod_that_is_gone_is_disconnected(
        self, put: tuple[dict[str, Any], ...], removed: list[str]
    ) -> None:
        setup = Setup(reviewed("pay-1"))
        revoked: list[str] = []
        stop = setup.authenticator.on_revoke(revoked.append)
        setup.connect(token("pay-1"))
        assert setup.authenticator.revoke_missing() == frozenset()
        setup.authority.update(put=put, remove=removed)
        assert setup.authenticator.revoke_missing() == {"shop/pay-1"}
        assert revoked == ["shop/pay-1"]
        stop()

    def test_a_pod_that_only_changes_its_labels_stays(self) -> None:
        setup = Setup(reviewed("pay-1"))
        setup.connect(token("pay-1"))
        setup.authority.update(put=[pod("pay-1", labels={"a": "b"})])
        assert setup.authenticator.revoke_missing() == frozenset()


class TestGateways:
    _GATEWAY = (gateway(), gateway_deployment())

    def _connect(self, node: str, *objects: dict[str, Any], account: str = "gw") -> AuthenticatedProxy:
        setup = Setup(reviewed("gw-1", account=account), *objects)
        return setup.connect(token("gw-1", account=account), node)

    def test_a_pod_of_a_gateway_shares_the_resources_of_the_gateway(self) -> None:
        proxy = self._connect("gateway:shop/gw/gw-1", *self._GATEWAY, gateway_pod("gw-1"))
        assert proxy == AuthenticatedProxy("gateway:shop/gw/gw-1", "gateway:shop/gw")

    @pytest.mark.parametrize("node", ["shop/gw-1", "gateway:shop/gw", "gateway:shop/gw/gw-2", "gateway:shop/else/gw-1"])
    def test_it_is_no_other_proxy(self, node: str) -> None:
        with pytest.raises(AuthenticationError):
            self._connect(node, *self._GATEWAY, gateway_pod("gw-1"))

    @pytest.mark.parametrize(
        ("objects", "account"),
        [
            ((*_GATEWAY, pod("gw-1", account="gw", labels={"eastgate.dev/gateway": "gw"})), "gw"),
            ((*_GATEWAY, gateway_pod("gw-1", account="default")), "default"),
            ((gateway(), gateway_deployment(owner="else"), gateway_pod("gw-1")), "gw"),
            ((gateway_deployment(), gateway_pod("gw-1")), "gw"),
            ((gateway(class_name="istio"), gateway_deployment(), gateway_pod("gw-1")), "gw"),
            ((gateway(), gateway_pod("gw-1")), "gw"),
        ],
        ids=["no owner", "account", "owner", "no Gateway", "class", "no Deployment"],
    )
    def test_a_pod_with_only_the_label_does_not_belong_to_a_gateway(
        self, objects: tuple[dict[str, Any], ...], account: str
    ) -> None:
        with pytest.raises(AuthenticationError):
            self._connect("gateway:shop/gw/gw-1", *objects, account=account)
        own = AuthenticatedProxy("shop/gw-1", "shop/gw-1")
        assert self._connect("shop/gw-1", *objects, account=account) == own


class TestSvids:
    def _connect(self, identity: str, address: str, node: str = "shop/pay-1") -> AuthenticatedProxy:
        world = authority(pod("pay-1", account="pay", ip="10.0.0.1"), pod("pay-2", account="pay", ip="10.0.0.2"))
        authenticator = PodAuthenticator(lambda: world.world, [SvidProofs(lambda: world.world, world.settings)])
        svid = EmbeddedCa("cluster.local").issue(identity)
        credentials = ProxyCredentials(certificate=svid.chain.encode(), address=address)
        assert authenticator.may_authenticate(credentials)
        return asyncio.run(authenticator.authenticate(credentials, node))

    @pytest.mark.parametrize("address", ["10.0.0.1", "::ffff:10.0.0.1"])
    def test_an_account_at_the_address_of_its_pod_is_the_proxy_of_that_pod(self, address: str) -> None:
        assert self._connect("spiffe://cluster.local/ns/shop/sa/pay", address) == _PROXY

    @pytest.mark.parametrize(
        ("identity", "address"),
        [
            ("spiffe://cluster.local/ns/shop/sa/pay", "10.0.0.2"),
            ("spiffe://cluster.local/ns/shop/sa/pay", "10.0.0.3"),
            ("spiffe://cluster.local/ns/shop/sa/pay", ""),
            ("spiffe://cluster.local/ns/shop/sa/else", "10.0.0.1"),
            ("spiffe://cluster.local/ns/else/sa/pay", "10.0.0.1"),
        ],
        ids=["another pod of the account", "no pod", "no address", "account", "namespace"],
    )
    def test_anything_else_is_refused(self, identity: str, address: str) -> None:
        with pytest.raises(AuthenticationError):
            self._connect(identity, address)

    def test_an_invalid_certificate_is_refused(self) -> None:
        world = authority(pod("pay-1", ip="10.0.0.1"))
        proofs = SvidProofs(lambda: world.world, world.settings)
        assert not proofs.may_prove(ProxyCredentials("token"))
        with pytest.raises(AuthenticationError, match="not an SVID"):
            asyncio.run(proofs.prove(ProxyCredentials(certificate=b"nothing", address="10.0.0.1")))
