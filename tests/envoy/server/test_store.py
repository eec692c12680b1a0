"""The wanted resources of proxies, and the known state of the proxies."""

from __future__ import annotations

import pytest

from eastgate.envoy.server.resources import CLUSTER, EXTENSION, LISTENER, SECRET, XdsResource, short_type
from eastgate.envoy.server.status import Ledger, ResourceState, find_suspects
from eastgate.envoy.server.store import Store
from tests.envoy.server.fake import resource

A1, A2, B1 = resource(LISTENER, "a", "1", "p"), resource(LISTENER, "a", "2", "p"), resource(LISTENER, "b", "1")


def test_a_version_follows_the_body_and_nothing_else() -> None:
    assert A1.version == resource(CLUSTER, "other", "1").version
    assert A1.version != A2.version
    assert (A1.size, A1.key, short_type(A1.type_url)) == (1, (LISTENER, "a"), "Listener")
    assert "body" not in repr(A1)


def test_put_replaces_everything_and_tells_what_changed() -> None:
    store = Store()
    assert store.put("n", [A1, B1]).put == (A1, B1)
    change = store.put("n", [A2])
    assert (change.put, change.removed, change.types) == ((A2,), ((LISTENER, "b"),), frozenset({LISTENER}))
    assert store.resources("n") == (A2,)


def test_the_same_again_is_no_change_but_its_policies_are_noted() -> None:
    store = Store()
    first = store.put("n", [A1])
    again = store.update("n", [resource(LISTENER, "a", "1", "q")])
    assert not again
    assert again.revision == first.revision
    assert store.of_type("n", LISTENER)["a"].policies == {"q"}


def test_update_changes_some() -> None:
    store = Store()
    store.put("n", [A1, B1])
    change = store.update("n", [A2], [(LISTENER, "b"), (LISTENER, "none")])
    assert (change.put, change.removed) == ((A2,), ((LISTENER, "b"),))
    assert store.update("n", [A2], [A2.key]).removed == ()


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two resources named 'a'"):
        Store().put("n", [A1, A2])


def test_revisions_grow_even_over_a_node_that_was_forgotten() -> None:
    store = Store()
    seen = [store.revision("n"), store.put("n", [A1]).revision, store.put("n", [A2]).revision]
    store.forget("n")
    assert not store.has_node("n")
    assert store.revision("n") == 0
    seen.append(store.put("n", [A1]).revision)
    assert seen == sorted(set(seen))


def test_identical_resources_of_many_nodes_are_stored_once() -> None:
    store = Store()
    for number in range(100):
        store.put(str(number), [XdsResource(SECRET, "s", b"x" * 1000)])
    assert len({id(store.of_type(str(number), SECRET)["s"].body) for number in range(100)}) == 1


def test_only_watchers_of_the_node_are_called_and_only_for_changes() -> None:
    store = Store()
    mine: list[frozenset[str]] = []
    others: list[frozenset[str]] = []
    stop = store.watch("n", mine.append)
    store.watch("other", others.append)
    store.put("n", [A1])
    store.put("n", [A1])
    store.update("n", [resource(EXTENSION, "e", "1")])
    stop()
    store.put("n", [])
    assert (mine, others) == ([frozenset({LISTENER}), frozenset({EXTENSION})], [])


def test_when_a_resource_changed_is_known_as_long_as_it_is_there() -> None:
    store = Store()
    store.put("n", [A1])
    first = store.changed_at("n", A1.key)
    store.put("n", [A1])
    assert store.changed_at("n", A1.key) == first
    store.put("n", [])
    assert store.changed_at("n", A1.key) is None


def test_policies_at_fault_are_those_that_are_new_or_else_all() -> None:
    ledger = Ledger("n")
    assert ledger.reject(A1.key, resource(LISTENER, "a", "x", "p", "q"), "no").policies == {"p", "q"}
    ledger.accept(A1.key, A1)
    assert ledger.reject(A1.key, resource(LISTENER, "a", "x", "p", "q"), "no").policies == {"q"}
    assert ledger.reject(A1.key, resource(LISTENER, "a", "x", "p"), "no").policies == {"p"}


def test_a_status_tells_wanted_accepted_and_rejected() -> None:
    store, ledger = Store(), Ledger("n")
    store.put("n", [A2, B1])
    ledger.accept(A1.key, A1)
    ledger.accept(B1.key, B1)
    assert [one.state for one in ledger.snapshot(store, False).resources] == [
        ResourceState.WAITING,
        ResourceState.ACCEPTED,
    ]
    ledger.reject(A2.key, A2, "no")
    (found,) = ledger.snapshot(store, True).rejected
    assert (found.wanted, found.accepted) == (A2.version, A1.version)
    assert found.rejection is not None
    assert (found.rejection.message, found.rejection.policies) == ("no", frozenset({"p"}))


def test_a_message_is_kept_without_the_resource_that_it_quotes() -> None:
    ledger = Ledger("n")
    text = 'name: "s"\ntls_certificate {\n private_key: "abc"\n}\n: Proto constraint validation failed (Secret.Name: x)'
    assert ledger.reject(A1.key, A1, text).message == "Proto constraint validation failed (Secret.Name: x)"
    pem = "cannot load -----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY----- sorry"
    assert ledger.reject(A1.key, A1, pem).message == "cannot load … sorry"
    assert len(ledger.reject(A1.key, A1, "x" * 100_000).message) == 2000


def test_names_in_a_message_are_hints() -> None:
    names = frozenset({"a", "b", "ab"})
    assert find_suspects(LISTENER, "Error adding/updating listener(s) ab: x\nb: a\n", names) == {"ab", "b"}
    assert find_suspects(EXTENSION, 'goo.gle/debugstr\nname: "a"\n: failed', names) == {"a"}
    assert find_suspects(EXTENSION, "a is wrong", names) == frozenset()
