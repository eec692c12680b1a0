"""Whatever happens, in whatever order: in the end the proxy runs what the store says, less what it rejected."""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from eastgate.envoy.server.limits import Limits
from eastgate.envoy.server.resources import CLUSTER, EXTENSION, LISTENER
from eastgate.envoy.server.status import Ledger, ResourceState
from eastgate.envoy.server.store import Store
from eastgate.envoy.server.streams import Stream
from tests.envoy.server.fake import BAD, FakeProxy, request, resource, send

TYPES = (CLUSTER, LISTENER, EXTENSION)
NAMES = ("a", "b", "c", "d")
types = st.sampled_from(TYPES)
names = st.sampled_from(NAMES)
bodies = st.sampled_from(("good 1", "good 2", "good 3", "bad 1", "bad 2"))


class Conversation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = Store()
        self.store.put("n", [])
        self.ledger = Ledger("n")
        self.proxy = FakeProxy()
        self.proxy.names = {EXTENSION: set(NAMES)}
        self.open()

    def open(self) -> None:
        self.down: deque[Any] = deque()
        self.stream = Stream("n", self.store, self.ledger, Limits(response=12))
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

    @rule(name=names)
    def proxy_unsubscribes(self, name: str) -> None:
        if name in self.proxy.names[EXTENSION]:
            self.proxy.names[EXTENSION].discard(name)
            self.proxy.drop((EXTENSION, name))
            self.up.append(request(EXTENSION, resource_names_unsubscribe=[name]))

    @rule(name=names)
    def proxy_subscribes(self, name: str) -> None:
        if name not in self.proxy.names[EXTENSION]:
            self.proxy.names[EXTENSION].add(name)
            self.up.append(request(EXTENSION, name))

    @rule()
    def reconnect(self) -> None:
        self.close()
        self.open()

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
            waits = not self.proxy.names[EXTENSION]  # for a proxy that had one, and does not ask for any since
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
                assert status[key].state is ResourceState.REJECTED or not status[key].confirmed
                assert self.proxy.runs.get(key) != one.body
            else:
                assert self.proxy.runs.get(key) == one.body
                assert status[key].state is ResourceState.ACCEPTED
        too_many = {key for key in self.proxy.runs.keys() - wanted.keys() if not (stuck and key[0] == CLUSTER)}
        assert not too_many
        before = self.proxy.rejections
        assert send(self.stream) is None  # what was rejected is not sent again
        assert self.proxy.rejections == before

    def asked(self, key: tuple[str, str]) -> bool:
        return key[0] != EXTENSION or key[1] in self.proxy.names[EXTENSION]


Conversation.TestCase.settings = settings(max_examples=400, stateful_step_count=40, deadline=None)
TestConversation = Conversation.TestCase
