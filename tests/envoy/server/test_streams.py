"""One stream, request by request."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from envoy.config.core.v3.base_pb2 import Node

from eastgate.envoy.server.limits import Limits
from eastgate.envoy.server.resources import CLUSTER, ENDPOINTS, EXTENSION, LISTENER, ORDER, ROUTE, SECRET, XdsResource
from eastgate.envoy.server.status import Ledger, ResourceState
from eastgate.envoy.server.store import Store
from eastgate.envoy.server.streams import ProtocolError, Stream
from tests.envoy.server.fake import (
    answer,
    content,
    exchange,
    meaning,
    rejected_names,
    request,
    resource,
    respelled,
    send,
)

NODE = "n"


def opened(store: Store, ledger: Ledger | None = None, **limits: int) -> Stream:
    stream = Stream(NODE, store, ledger or Ledger(NODE), Limits(**limits), respelled=respelled)
    store.watch(NODE, stream.notify_changed)
    return stream


def holding(*resources: XdsResource) -> Store:
    store = Store()
    store.put(NODE, resources)
    return store


def routes(**bodies: str) -> list[XdsResource]:
    return [resource(ROUTE, name, body) for name, body in bodies.items()]


def versions(resources: Iterable[XdsResource]) -> dict[str, str]:
    return {one.name: one.version for one in resources}


def test_who_names_no_listeners_gets_all_of_them() -> None:
    stream = opened(holding(resource(LISTENER, "a", "1"), resource(LISTENER, "b", "1")))
    assert exchange(stream, request(LISTENER)) == [(LISTENER, {"a": b"1", "b": b"1"}, [])]
    assert stream.settled is True


def test_who_names_no_routes_gets_none_and_a_star_gets_all() -> None:
    assert exchange(opened(holding(*routes(a="1"))), request(ROUTE)) == []
    assert exchange(opened(holding(*routes(a="1"))), request(ROUTE, "*")) == [(ROUTE, {"a": b"1"}, [])]


def test_an_empty_wildcard_subscription_is_answered_once() -> None:
    stream = opened(holding())
    assert exchange(stream, request(CLUSTER)) == [(CLUSTER, {}, [])]
    assert exchange(stream) == []


def test_what_is_asked_for_and_does_not_exist_is_answered_as_removed() -> None:
    stream = opened(holding(*routes(a="1")))
    assert exchange(stream, request(ROUTE, "a", "b")) == [(ROUTE, {"a": b"1"}, ["b"])]
    assert exchange(stream) == []


def test_one_change_is_one_resource_in_one_response() -> None:
    store = holding(*routes(a="1", b="1", c="1"))
    stream = opened(store)
    exchange(stream, request(ROUTE, "a", "b", "c"))
    store.update(NODE, routes(b="2"))
    assert exchange(stream) == [(ROUTE, {"b": b"2"}, [])]


def test_an_unknown_node_gets_nothing_and_is_not_settled() -> None:
    store = Store()
    stream = opened(store)
    held = request(LISTENER, initial_resource_versions={"a": "1"})
    assert exchange(stream, held) == []
    assert stream.settled is False
    store.put(NODE, [])
    assert exchange(stream) == [(LISTENER, {}, ["a"])]
    store.update(NODE, [resource(LISTENER, "b", "1")])
    exchange(stream)
    store.forget(NODE)
    assert exchange(stream) == []


def test_a_name_that_is_not_asked_for_any_more_is_not_sent() -> None:
    store = holding(*routes(a="1", b="1"))
    stream = opened(store)
    exchange(stream, request(ROUTE, "a", "b"))
    exchange(stream, request(ROUTE, resource_names_unsubscribe=["a"]))
    store.update(NODE, routes(a="2", b="2"))
    assert exchange(stream) == [(ROUTE, {"b": b"2"}, [])]
    assert exchange(stream, request(ROUTE, "a")) == [(ROUTE, {"a": b"2"}, [])]


def test_who_asks_again_is_answered_again_even_while_the_first_answer_is_on_its_way() -> None:
    stream = opened(holding(*routes(a="1")))
    stream.receive(request(ROUTE, "a"))
    first = send(stream)
    stream.receive(request(ROUTE, resource_names_unsubscribe=["a"]))
    stream.receive(request(ROUTE, "a"))
    assert send(stream) is None
    assert exchange(stream, answer(first)) == [(ROUTE, {"a": b"1"}, [])]


def test_everything_can_be_given_up_but_names_stay() -> None:
    store = holding(resource(LISTENER, "a", "1"), resource(LISTENER, "b", "1"))
    stream = opened(store)
    exchange(stream, request(LISTENER, "*", "a"))
    exchange(stream, request(LISTENER, resource_names_unsubscribe=["*"]))
    store.put(NODE, [resource(LISTENER, "a", "2"), resource(LISTENER, "b", "2")])
    assert exchange(stream) == [(LISTENER, {"a": b"2"}, [])]


def test_after_a_reconnect_only_the_difference_is_sent() -> None:
    before = [resource(LISTENER, name, "1") for name in "abc"]
    store = holding(before[0], resource(LISTENER, "b", "2"))
    stream = opened(store)
    claims = request(LISTENER, initial_resource_versions=versions(before))
    assert exchange(stream, claims) == [(LISTENER, {"b": b"2"}, ["c"])]
    assert exchange(opened(holding(*before)), claims) == []


def test_there_is_one_response_of_a_type_on_its_way_and_the_latest_state_wins() -> None:
    store = holding(*routes(a="0"))
    stream = opened(store)
    stream.receive(request(ROUTE, "a"))
    first = send(stream)
    for number in range(1, 1001):
        store.update(NODE, routes(a=str(number)))
        assert send(stream) is None
    assert exchange(stream, answer(first)) == [(ROUTE, {"a": b"1000"}, [])]


def test_an_answer_to_another_response_counts_for_nothing() -> None:
    store = holding(*routes(a="1"))
    stream = opened(store)
    stream.receive(request(ROUTE, "a"))
    response = send(stream)
    assert stream.receive(request(ROUTE, response_nonce="17")) is None
    assert send(stream) is None
    assert stream.receive(answer(response)) is not None


def test_types_are_sent_in_the_order_in_which_they_need_each_other() -> None:
    stream = opened(holding(*(resource(type_url, "a", "1") for type_url in reversed(ORDER))))
    requests = [request(type_url, *([] if type_url in (CLUSTER, LISTENER) else ["a"])) for type_url in reversed(ORDER)]
    assert [type_url for type_url, _, _ in exchange(stream, *requests)] == list(ORDER)
    assert ORDER == (CLUSTER, ENDPOINTS, SECRET, LISTENER, ROUTE, EXTENSION)


def test_a_listener_waits_for_a_new_cluster_that_has_to_wait_and_nothing_else_does() -> None:
    store = holding(resource(CLUSTER, "old", "1"), resource(LISTENER, "l", "1"), resource(EXTENSION, "a", "1"))
    stream = opened(store)
    for one in (request(CLUSTER), request(LISTENER), request(EXTENSION, "a")):
        stream.receive(one)
    clusters, listeners, extension = send(stream), send(stream), send(stream)
    stream.receive(answer(listeners))
    stream.receive(answer(extension))
    store.update(NODE, [resource(CLUSTER, "new", "1"), resource(LISTENER, "l", "2"), resource(EXTENSION, "a", "2")])
    assert content(send(stream)) == ({"a": b"2"}, [])
    assert send(stream) is None
    stream.receive(answer(clusters))
    assert content(send(stream)) == ({"new": b"1"}, [])
    assert content(send(stream)) == ({"l": b"2"}, [])


def test_a_cluster_goes_only_after_the_listeners_were_accepted() -> None:
    store = holding(resource(CLUSTER, "c", "1"), resource(LISTENER, "l", "1"))
    stream = opened(store)
    exchange(stream, request(CLUSTER), request(LISTENER))
    store.put(NODE, [resource(LISTENER, "l", "2")])
    listeners = send(stream)
    assert content(listeners) == ({"l": b"2"}, [])
    assert send(stream) is None
    assert exchange(stream, answer(listeners)) == [(CLUSTER, {}, ["c"])]


def test_after_a_reconnect_clusters_do_not_go_before_the_listeners_were_asked_for() -> None:
    stream = opened(holding(resource(LISTENER, "l", "2")))
    assert exchange(stream, request(CLUSTER, initial_resource_versions={"c": "1"})) == []
    listeners = request(LISTENER, initial_resource_versions={"l": "1"})
    assert exchange(stream, listeners) == [(LISTENER, {"l": b"2"}, []), (CLUSTER, {}, ["c"])]


def test_while_a_listener_is_rejected_the_cluster_of_the_old_one_stays() -> None:
    store = holding(resource(CLUSTER, "c", "1"), resource(LISTENER, "l", "1"))
    stream = opened(store)
    exchange(stream, request(CLUSTER), request(LISTENER))
    store.put(NODE, [resource(LISTENER, "l", "bad")])
    stream.receive(answer(send(stream), "no"))
    assert exchange(stream) == []
    assert stream.settled is True
    store.put(NODE, [resource(LISTENER, "l", "3")])
    assert exchange(stream) == [(LISTENER, {"l": b"3"}, []), (CLUSTER, {}, ["c"])]


def test_a_large_response_is_split() -> None:
    store = holding(*routes(a="x" * 60, b="x" * 30, c="x" * 30, d="x" * 200))
    seen = exchange(opened(store, response=100), request(ROUTE, "a", "b", "c", "d"))
    assert [sorted(added) for _, added, _ in seen] == [["a", "b"], ["c"], ["d"]]


def test_the_one_bad_of_many_is_found_and_the_others_are_accepted() -> None:
    names = [f"e{number:02}" for number in range(40)]
    ledger = Ledger(NODE)
    store = holding(*(resource(ROUTE, name, "bad" if name == "e17" else "good", name) for name in names))
    stream = opened(store, ledger)
    stream.receive(request(ROUTE, *names))
    sent = 0
    while (response := send(stream)) is not None:
        sent += 1
        bad = any(one.resource.value == b"bad" for one in response.resources)
        stream.receive(answer(response, "something is wrong" if bad else None))
    assert [(key, one.policies) for key, one in ledger.rejections.items()] == [((ROUTE, "e17"), frozenset({"e17"}))]
    accepted = [one for one in ledger.snapshot(store, True).resources if one.accepted == one.wanted]
    assert len(accepted) == 39
    assert sent <= 13


def test_a_message_that_names_listeners_is_a_hint_and_no_more() -> None:
    ledger = Ledger(NODE)
    stream = opened(holding(*(resource(LISTENER, name, name) for name in "abcd")), ledger)
    stream.receive(request(LISTENER))
    stream.receive(answer(send(stream), "Error adding/updating listener(s) a: said \nb: by somebody\n"))
    groups = [stream.next_response() for _ in range(1)]
    assert [sorted(group.items) for group in groups if group is not None] == [["c", "d"]]
    stream.receive(request(LISTENER, response_nonce="2"))
    exchange(stream)
    assert not ledger.rejections


def test_what_is_rejected_is_sent_again_only_when_it_changes() -> None:
    store = holding(*routes(a="bad"))
    stream = opened(store)
    stream.receive(request(ROUTE, "a"))
    assert rejected_names(stream.receive(answer(send(stream), "no"))) == ["a"]
    assert exchange(stream) == []
    assert stream.settled is True
    store.update(NODE, routes(a="bad"))
    assert exchange(stream) == []
    store.update(NODE, routes(a="good"))
    assert exchange(stream) == [(ROUTE, {"a": b"good"}, [])]


def test_of_a_rejected_response_of_which_one_was_asked_for_anew_the_other_is_not_yet_at_fault() -> None:
    stream = opened(holding(*routes(a="good", b="bad")))
    stream.receive(request(ROUTE, "a", "b"))
    response = send(stream)
    stream.receive(request(ROUTE, "b"))
    assert rejected_names(stream.receive(answer(response, "no"))) == []


@pytest.mark.parametrize("lost", [False, True], ids=["the rejection arrives", "the rejection is lost"])
def test_after_a_rejection_the_proxys_claims_are_not_believed(lost: bool) -> None:
    first = routes(a="1", b="1")
    store, ledger = holding(*first), Ledger(NODE)
    stream = opened(store, ledger)
    exchange(stream, request(ROUTE, "a", "b"))
    store.update(NODE, routes(a="2", b="bad"))
    response = send(stream)
    if not lost:
        stream.receive(answer(response, "no"))
    stream.close()
    store.put(NODE, first)  # the proxy may run version 2 of a now, but claims version 1
    again = opened(store, ledger)
    claims = request(ROUTE, "a", "b", initial_resource_versions=versions(first))
    assert exchange(again, claims) == [(ROUTE, {"a": b"1", "b": b"1"}, [])]


def test_what_was_accepted_while_the_stream_broke_is_believed() -> None:
    store, ledger = holding(*routes(a="1")), Ledger(NODE)
    stream = opened(store, ledger)
    stream.receive(request(ROUTE, "a"))
    send(stream)
    stream.close()
    claims = request(ROUTE, "a", initial_resource_versions=versions(routes(a="1")))
    assert exchange(opened(store, ledger), claims) == []


def test_a_rejection_outlives_a_reconnect_but_not_a_restart_of_the_proxy() -> None:
    first = routes(a="1")
    store, ledger = holding(*first), Ledger(NODE)
    stream = opened(store, ledger)
    exchange(stream, request(ROUTE, "a"))
    store.update(NODE, routes(a="bad"))
    stream.receive(answer(send(stream), "no"))
    stream.close()
    again = opened(store, ledger)
    assert exchange(again, request(ROUTE, "a", initial_resource_versions=versions(first))) == []
    again.close()
    assert exchange(opened(store, ledger), request(ROUTE, "a")) == [(ROUTE, {"a": b"bad"}, [])]


def test_a_proxy_that_claims_anything_is_no_new_process() -> None:
    store, ledger = holding(resource(LISTENER, "l", "1"), resource(EXTENSION, "a", "bad")), Ledger(NODE)
    stream = opened(store, ledger)
    exchange(stream, request(LISTENER))
    stream.receive(request(EXTENSION, "a"))
    stream.receive(answer(send(stream), "no"))
    stream.close()
    claims = request(LISTENER, initial_resource_versions=versions([resource(LISTENER, "l", "1")]))
    assert exchange(opened(store, ledger), claims, request(EXTENSION, "a")) == []


def test_a_rejected_removal_is_not_repeated() -> None:
    store = holding(resource(LISTENER, "a", "1"))
    stream = opened(store)
    exchange(stream, request(LISTENER))
    store.put(NODE, [])
    assert rejected_names(stream.receive(answer(send(stream), "no"))) == ["a"]
    assert exchange(stream) == []


def test_a_stream_belongs_to_one_node() -> None:
    stream = opened(holding())
    stream.receive(request(LISTENER, node=Node(id=NODE)))
    with pytest.raises(ProtocolError, match="may not change"):
        stream.receive(request(LISTENER, node=Node(id="other")))


def test_subscriptions_are_bounded_by_name_and_by_claim() -> None:
    stream = opened(holding(), subscriptions=3)
    stream.receive(request(ROUTE, "a", "b", "c"))
    with pytest.raises(ProtocolError, match="too many"):
        stream.receive(request(SECRET, "d"))
    with pytest.raises(ProtocolError, match="too many"):
        opened(holding(), subscriptions=3).receive(
            request(LISTENER, initial_resource_versions=dict.fromkeys("abcd", "1"))
        )


@pytest.mark.parametrize("type_url", [EXTENSION, SECRET])
def test_what_envoy_looks_at_only_once_is_sent_one_by_one(type_url: str) -> None:
    stream = opened(holding(*(resource(type_url, name, "1") for name in "abc")))
    seen = exchange(stream, request(type_url, "a", "b", "c", "x", "y"))
    assert [(sorted(added), removed) for _, added, removed in seen] == [
        ([], ["x", "y"]),
        (["a"], []),
        (["b"], []),
        (["c"], []),
    ]


@pytest.mark.parametrize(("type_url", "is_respelled"), [(EXTENSION, True), (SECRET, True), (ROUTE, False)])
def test_what_another_control_plane_may_have_sent_is_respelled_once(type_url: str, is_respelled: bool) -> None:
    """The proxy may have rejected it there, and would accept it without validation."""
    store, ledger = holding(resource(type_url, "a", "2")), Ledger(NODE)
    stream = opened(store, ledger)
    claims = request(type_url, "a", initial_resource_versions=versions([resource(type_url, "a", "1")]))
    assert _bodies(exchange(stream, claims), is_respelled) == [b"2"]
    assert ledger.snapshot(store, True).resources[0].state is ResourceState.ACCEPTED
    store.put(NODE, [resource(type_url, "a", "3")])
    assert _bodies(exchange(stream), False) == [b"3"]


@pytest.mark.parametrize("is_answered", [False, True])
@pytest.mark.parametrize("type_url", [EXTENSION, SECRET])
def test_a_proxy_that_shows_late_that_it_was_connected_before_validates_again(type_url: str, is_answered: bool) -> None:
    """It accepts the first bytes without validation if another control plane has sent them, so they prove nothing."""
    listener = resource(LISTENER, "l", "1")
    ledger = Ledger(NODE)
    store = holding(listener, resource(type_url, "a", "2"))
    stream = opened(store, ledger)
    stream.receive(request(type_url, "a"))
    first = send(stream)
    claims = request(LISTENER, initial_resource_versions=versions([listener]))
    for one in (answer(first), claims) if is_answered else (claims, answer(first)):
        stream.receive(one)
    states = {one.name: one.state for one in ledger.snapshot(store, True).resources}
    assert states["a"] is not ResourceState.ACCEPTED
    assert _bodies(exchange(stream), True) == [b"2"]
    assert all(one.state is ResourceState.ACCEPTED for one in ledger.snapshot(store, True).resources)


def test_what_a_proxy_has_from_another_control_plane_is_not_sent() -> None:
    store = holding(resource(EXTENSION, "a", "2"))
    first, second = opened(store), opened(store)
    claims = request(EXTENSION, "a", initial_resource_versions=versions([resource(EXTENSION, "a", "1")]))
    first.receive(claims)
    response = send(first)
    assert response is not None
    (sent,) = response.resources
    assert exchange(second, request(EXTENSION, "a", initial_resource_versions={"a": sent.version})) == []


def test_what_was_on_its_way_when_a_stream_ended_is_respelled() -> None:
    store, ledger = holding(resource(EXTENSION, "a", "1")), Ledger(NODE)
    stream = opened(store, ledger)
    assert _bodies(exchange(stream, request(EXTENSION, "a")), False) == [b"1"]
    store.put(NODE, [resource(EXTENSION, "a", "2")])
    send(stream)
    stream.close()
    ledger.on_disconnected()
    claims = request(EXTENSION, "a", initial_resource_versions=versions([resource(EXTENSION, "a", "1")]))
    assert _bodies(exchange(opened(store, ledger), claims), True) == [b"2"]


@pytest.mark.parametrize("accepts", [True, False])
def test_what_is_asked_for_anew_while_it_is_on_its_way_is_respelled(accepts: bool) -> None:
    store, ledger = holding(resource(EXTENSION, "a", "1")), Ledger(NODE)
    stream = opened(store, ledger)
    stream.receive(request(EXTENSION, "a"))
    first = send(stream)
    stream.receive(request(EXTENSION, "a"))
    stream.receive(answer(first) if accepts else answer(first, "no"))
    second = send(stream)
    assert _bodies([(EXTENSION, *content(second))], True) == [b"1"]
    stream.receive(answer(second) if accepts else answer(second, "no"))
    (found,) = ledger.snapshot(store, True).resources
    assert found.state is (ResourceState.ACCEPTED if accepts else ResourceState.REJECTED)


def _bodies(seen: Iterable[tuple[str, dict[str, bytes], list[str]]], respelled: bool) -> list[bytes]:
    """The meaning of the sent resources, in any spelling."""
    bodies = [body for _, added, _ in seen for body in added.values()]
    assert all((meaning(body) != body) is respelled for body in bodies)
    return [meaning(body) for body in bodies]


def test_types_that_are_not_served_are_ignored() -> None:
    assert exchange(opened(holding()), request("type.googleapis.com/envoy.service.runtime.v3.Runtime", "a")) == []


def test_a_closed_stream_sends_nothing_and_receives_nothing() -> None:
    ledger = Ledger(NODE)
    stream = opened(holding(*routes(a="1")), ledger)
    stream.receive(request(ROUTE, "a"))
    response = send(stream)
    stream.close()
    assert exchange(stream, answer(response), request(LISTENER)) == []
    assert ledger.snapshot(Store(), False).resources == ()
