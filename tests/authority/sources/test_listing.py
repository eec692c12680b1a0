"""One reading of a cluster: a kind in discovery that cannot be listed counts as unread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from eastgate.authority.sources.listing import _Listing  # its connection is made from a kubeconfig
from eastgate.reading.kubernetes import ApiError, Connection, Discovery, Resource, UnreachableError
from eastgate.reading.manifests.document import origin_of
from eastgate.reading.manifests.rendered import UnlistedKind
from eastgate.settings import Settings
from tests.authority.sources.objects import GROUP, policy

POLICIES = Resource(GROUP, "v1alpha2", "authorizationpolicies", "AuthorizationPolicy")
FORBIDDEN = ApiError(403, "Forbidden", "not you")


class Server(Connection):
    """A connection with the answers of a test: each is a page, or an error."""

    def __init__(self, discovery: Discovery, *answers: dict[str, Any] | ApiError) -> None:
        self._discovery = discovery
        self._answers = list(answers)

    async def discover(self) -> Discovery:
        return self._discovery

    async def request(self, method: str, path: str, *_: object, **options: object) -> dict[str, Any]:
        assert method == "GET"
        assert "authorizationpolicies" in path
        assert "limit" in cast("Mapping[str, str]", options["params"])
        answer = self._answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer


def page(*names: str, more: str = "") -> dict[str, Any]:
    items = [policy("shop", name, ["web"]) for name in names]
    return {"kind": "AuthorizationPolicyList", "metadata": {"resourceVersion": "1", "continue": more}, "items": items}


def read(server: Server) -> tuple[set[str], dict[str, str]]:
    """Return the names of the policies that were read, and the unread kinds with the reason."""
    documents = asyncio.run(_Listing(server, "shop").read(Settings(), None))
    origins = [(each, origin_of(each)) for each in documents]
    unlisted = {each.kind: origin.reason for each, origin in origins if isinstance(origin, UnlistedKind)}
    return {each.name for each, origin in origins if not isinstance(origin, UnlistedKind)}, unlisted


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([ApiError(404, "NotFound", "gone")], "cannot be listed: gone"),
        ([ApiError(406, "NotAcceptable", "no JSON")], "cannot be listed: no JSON"),
        ([ApiError(500, "InternalError", "no webhook")], "cannot be listed: no webhook"),
        ([ApiError(503, "ServiceUnavailable", "")], "cannot be listed: ServiceUnavailable"),
        ([page("cart", more="2"), ApiError(500, "InternalError", "page 2")], "cannot be listed: page 2"),
        ([page("cart", more="2"), ApiError(410, "Expired", "too old")] * 3, "cannot be listed: too old"),
        ([FORBIDDEN, FORBIDDEN], "may not be listed: not you"),
        ([FORBIDDEN, ApiError(500, "InternalError", "no webhook")], "cannot be listed: no webhook"),
        ([FORBIDDEN, ApiError(404, "NotFound", "no such namespace")], "may not be listed: not you"),
    ],
)
def test_a_list_that_fails_is_not_empty(answers: list[dict[str, Any] | ApiError], reason: str) -> None:
    assert read(Server(Discovery([POLICIES]), *answers)) == (set(), {"AuthorizationPolicy": reason})


def test_of_a_list_that_expires_between_pages_the_next_one_counts() -> None:
    expired = ApiError(410, "Expired", "too old")
    answers: list[dict[str, Any] | ApiError] = [page("cart", more="2"), expired, page("cart", more="2"), page("web")]
    assert read(Server(Discovery([POLICIES]), *answers)) == ({"cart", "web"}, {})


def test_of_one_namespace_only_its_policies_are_read() -> None:
    names, unlisted = read(Server(Discovery([POLICIES]), FORBIDDEN, page("cart")))
    assert names == {"cart"}
    assert unlisted == {"AuthorizationPolicy": "only those of the namespace shop may be listed"}


def test_an_answer_that_is_no_list_is_no_answer() -> None:
    with pytest.raises(UnreachableError):
        read(Server(Discovery([POLICIES]), {"kind": "Status", "status": "Success"}))


def test_a_kind_without_the_verb_list_is_not_empty() -> None:
    resource = Resource(GROUP, "v1alpha2", "authorizationpolicies", "AuthorizationPolicy", verbs=frozenset({"get"}))
    reason = "cannot be listed: the API server does not offer to list it"
    assert read(Server(Discovery([resource]))) == (set(), {"AuthorizationPolicy": reason})


def test_a_version_that_names_no_kinds_is_as_unknown_as_a_stale_one() -> None:
    version = {"version": "v1alpha2", "freshness": "Current", "resources": []}
    group = {"metadata": {"name": GROUP}, "versions": [version]}
    discovery = Discovery.of([{"kind": "APIGroupDiscoveryList", "items": [group]}])
    names, unlisted = read(Server(discovery))
    assert not names
    assert unlisted.keys() == {"AuthorizationPolicy", "XAuthorizationPolicy"}
