"""After any events in any order, the proxy runs the resources of the store, without those that it rejected."""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from eastgate.envoy.server.limits import Limits
from eastgate.envoy.server.resources import CLUSTER, EXTENSION, LISTENER, SECRET, VALIDATED_ONCE
from eastgate.envoy.server.status import Ledger, ResourceState
from eastgate.envoy.server.store import Store
from eastgate.envoy.server.streams import Stream
from tests.envoy.server.fake import BAD, FakeProxy, request, resource, respelled, send

TYPES = (CLUSTER, SECRET, LISTENER, EXTENSION)
NAMES = ("a", "b", "c", "d")
types = st.sampled_from(TYPES)
named_types = st.sampled_from(sorted(VALIDATED_ONCE))  # a proxy asks for these by name
names = st.sampled_from(NAMES)
bodies = st.sampled_from(("good 1", "good 2", "good 3", "bad 1", "bad 2"))


class Conversation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.store.put("n", [])
        self.ledger = Ledger("n")
        self.proxy = FakeProxy()
        self.proxy.names = {type_url: set(NAMES) for type_url in VALIDATED_ONCE}
        self.open()

    def open(self) -> None:
        self.down: deque[Any] = deque()
        self.stream = Stream("n", self.store, self.ledger, Limits(response=12), respelled=respelled)
        self.up: deque[Any] = deque(self.proxy.hello(TYPES))
        self.stop = self.store.watch("n", self.stream.notify_changed)

    def close(self) -> None:
        self.stop()
        self.stream.close()
        self.ledger.on_disconnected()

    @rule(type_url=types, name=names, body=bodies)
    def put(self, type_url: str, name: str, body: str) -> None:
        self.store.update("n", [resource(type_url, name, body)])

    @rule(type_url=types, name=names)
    def remove(self, type_url: str, name: str) -> None:
        self.store.update("n", remove=[(type_url, name)])

    @rule(type_url=types, name=names, data=st.data())
    def goes_and_comes_back(self, type_url: str, name: str, data: st.DataObject) -> None:
        """After the proxy has acknowledged its absence, a resource is put back unchanged."""
        if (was := self.store.of_type("n", type_url).get(name)) is not None:
            self.all_is_said(data)
            self.store.update("n", remove=[was.key])
            self.all_is_said(data)
            self.store.update("n", [was])

    @rule(found=st.dictionaries(st.tuples(types, names), bodies))
    def replace(self, found: dict[tuple[str, str], str]) -> None:
        self.store.put("n", [resource(*key, body) for key, body in found.items()])

    @rule()
    def server_sends(self) -> None:
        if (response := send(self.stream)) is not None:
            self.down.append(response)

    @rule(data=st.data())
    def proxy_answers(self, data: st.DataObject) -> None:
        if self.down:
            self.up.append(
                self.proxy.take(
                    self.down.popleft(), lambda good: [name for name in good if data.draw(st.booleans(), name)]
                )
            )

    @rule()
    def server_hears(self) -> None:
        if self.up:
            self.stream.receive(self.up.popleft())

    @rule(type_url=named_types, name=names)
    def proxy_unsubscribes(self, type_url: str, name: str) -> None:
        if name in self.proxy.names[type_url]:
            self.proxy.names[type_url].discard(name)
            self.proxy.drop((type_url, name))
            self.up.append(request(type_url, resource_names_unsubscribe=[name]))

    @rule(type_url=named_types, name=names)
    def proxy_subscribes(self, type_url: str, name: str) -> None:
        if name not in self.proxy.names[type_url]:
            self.proxy.names[type_url].add(name)
            self.up.append(request(type_url, name))

    @rule()
    def reconnect(self) -> None:
        self.close()
        self.open()

    @precondition(lambda self: self.proxy.versions)  # an Envoy that asks for extensions has a listener that names them
    @rule()
    def control_plane_restarts(self) -> None:
        self.close()
        self.ledger = Ledger("n")
        self.open()

    @precondition(lambda self: self.has_clusters_or_listeners)
    @rule(type_url=named_types, body=bodies, name=names)
    def another_control_plane_sends(self, type_url: str, name: str, body: str) -> None:
        """Another control plane has sent the proxy another version of one resource, and is gone."""
        self.close()
        if name in self.proxy.names[type_url]:
            same = [resource(*key, self.proxy.runs[key].decode()) for key in self.has_clusters_or_listeners]
            other = Store()
            other.put("n", [*same, resource(type_url, name, body)])
            stream = Stream("n", other, Ledger("n"), respelled=respelled)
            for hello in self.proxy.hello(TYPES):
                stream.receive(hello)
            while (response := send(stream)) is not None:
                stream.receive(self.proxy.take(response, list))
        self.open()

    @property
    def has_clusters_or_listeners(self) -> list[tuple[str, str]]:
        """The resources that show to a control plane that the proxy was connected before."""
        return [key for key in self.proxy.versions if key[0] in (CLUSTER, LISTENER) and key in self.proxy.runs]

    @rule()
    def proxy_restarts(self) -> None:
        self.close()
        self.proxy.restart()
        self.open()

    @rule(data=st.data())
    def all_is_said(self, data: st.DataObject) -> None:
        for _ in range(500):
            self.server_hears()
            self.server_sends()
            self.proxy_answers(data)
            waits = not all(self.proxy.names.values())  # for a proxy that had one, and asks for none since
            if not self.up and not self.down and (self.stream.settled or waits):
                break
        else:
            raise AssertionError("this never ends")
        self.check()

    def check(self) -> None:
        status = {(one.type_url, one.name): one for one in self.ledger.snapshot(self.store, True).resources}
        wanted = {one.key: one for one in self.store.resources("n") if self.asked(one.key)}
        stuck = any(one.state is ResourceState.REJECTED for key, one in status.items() if key[0] == LISTENER)
        for key, one in wanted.items():
            if one.body.startswith(BAD):
                assert status[key].state is ResourceState.REJECTED
                assert self.proxy.runs.get(key) != one.body
            else:
                assert self.proxy.runs.get(key) == one.body
                assert status[key].state is ResourceState.ACCEPTED
        too_many = {key for key in self.proxy.runs.keys() - wanted.keys() if not (stuck and key[0] == CLUSTER)}
        assert not {key for key in too_many if key[0] != SECRET}  # Envoy keeps those until nothing names them
        before = self.proxy.rejections
        assert send(self.stream) is None  # rejected versions are not sent again
        assert self.proxy.rejections == before

    def asked(self, key: tuple[str, str]) -> bool:
        return key[0] not in VALIDATED_ONCE or key[1] in self.proxy.names[key[0]]


Conversation.TestCase.settings = settings(max_examples=400, stateful_step_count=40, deadline=None)
TestConversation = Conversation.TestCase
