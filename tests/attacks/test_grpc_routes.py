"""The service and method of a gRPC route follow from the request that arrives, in every spelling."""

from __future__ import annotations

import contextlib
import itertools
import re
from concurrent.futures import ThreadPoolExecutor

from eastgate import Question
from eastgate.authority.questions import QuestionError
from tests.attacks.application import MARK
from tests.attacks.edge import CLEAR, Edge, http2_answers
from tests.differential.world import Manifest

_PATHS = [
    *("/s.Users/Get", "/s.Users/Get/", "//s.Users/Get", "/s.Users//Get", "/s.Users/./Get", "/x/../s.Users/Get"),
    *("/s.users/get", "/S.USERS/GET", "/s.Users/%47et", "/s%2eUsers/Get", "/s.Users%2fGet", "/s.Users%2FGet"),
    *("/s.Users/Get?x", "/s.Users/Get#x", "/s.Users/Get%00", "/s.Users/Get;x", "/s.Users/Get%20", "/s.Users\\Get"),
    *("/s.Users/Delete", "/s.Users/Get/x", "/s.Users/Get/../Delete", "/s.Users", "/s.Users/", "s.Users/Get", "*", ""),
    *("/s.Open/Del", "/s.Open/%44el", "/s.Open//Del", "/s.Open/./Del", "/s.Open/x/../Del", "/s.Open/Del?x"),
    *("/s.Open/Del%2f", "/s.Open%2fDel", "/s.Open/Other", "/s.Open", "/s.Open/", "http://g.example/s.Open/Del"),
    *("/x/Ping", "/x/Ping/", "/Ping", "//Ping", "/x/y/Ping", "/x%2fy/Ping", "/s.Rx/ABC", "/s.Rx/ABCD", "/s.Rx/A%42C"),
    *("/s.Rxy/A", "/s.R/A", "/s.Rx/y/A", "/sxRx/A", "/grpc.health.v1.Health/Check"),
]
_KINDS: dict[str, list[tuple[bytes, bytes]]] = {
    "gRPC": [(b"content-type", b"application/grpc"), (b"te", b"trailers")],
    "gRPC without te": [(b"content-type", b"application/grpc+proto")],
    "gRPC-Web": [(b"content-type", b"application/grpc-web"), (b"x-grpc-web", b"1")],
    "JSON": [(b"content-type", b"application/json")],
    "nothing": [],
}
_DELETE = "/s.Open/Del"
_NO_DELETE: Manifest = {
    "apiVersion": "agentic.networking.x-k8s.io/v1alpha1",
    "kind": "XAccessPolicy",
    "metadata": {"name": "no-delete", "namespace": "a"},
    "spec": {
        "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}],
        "action": "Deny",
        "rules": [{"name": "r", "authorization": {"type": "Inline", "paths": [{"type": "Exact", "value": _DELETE}]}}],
    },
}
_LEADS = re.compile(r"/s\.Users/Get|/s\.Open/(?!Del$)[^/]*|/[^/]+/Ping|/s\.R[a-z]/[A-C]+")
_MESSAGE = b"\0\0\0\0\0"


def test_a_call_arrives_as_it_was_decided(edge: Edge) -> None:
    authority = edge.enforce([_NO_DELETE])
    tried = [
        (path, method, kind)
        for path in _PATHS
        for method in ("POST", "GET", "OPTIONS", "post", "CONNECT")
        for kind in (_KINDS if method == "POST" else ["gRPC"])
    ]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda numbered: _try(edge, str(numbered[0]), *numbered[1]), enumerate(tried)))
    arrived = {one.mark: (one.method, one.target.partition("?")[0]) for one in edge.application.arrived}
    for number, (path, method, kind) in enumerate(tried):
        came = arrived.get(str(number))
        case = (path, method, kind, came)
        assert came is None or (came[0] == "POST" and _LEADS.fullmatch(came[1])), case
        try:
            asked = Question.of("anonymous", "gateway:a/gw", port=CLEAR, method=method, path=path, host="g.example")
            allowed = authority.decide(asked).allowed
        except QuestionError:
            allowed = False
        assert allowed or came is None, case
        assert came is not None or not allowed or "#" in path, case  # Envoy refuses a fragment


def _try(edge: Edge, mark: str, path: str, method: str, kind: str) -> None:
    pseudo = {":method": method, ":scheme": "http", ":path": path, ":authority": "g.example", MARK: mark}
    fields = [*((name.encode(), value.encode()) for name, value in pseudo.items()), *_KINDS[kind]]
    with contextlib.suppress(OSError), edge.connect(CLEAR) as connection:
        http2_answers(connection, fields, _MESSAGE)


_LINE = "{} {} HTTP/1.1\r\nhost: g.example\r\ncontent-type: application/grpc\r\n{}content-length: 5\r\n\r\n"
_UPGRADES = ("", *(f"connection: upgrade\r\nupgrade: {kind}\r\n" for kind in ("websocket", "h2c", "connect-udp")))


def test_over_http1_and_with_upgrades_it_is_the_same(edge: Edge) -> None:
    """Over HTTP/2 an upgrade would become a CONNECT after the decision."""
    edge.enforce([_NO_DELETE])
    edge.application.arrived.clear()
    paths = ("/s.Users/Get", "/s.Users/Delete", _DELETE, "/s.Open/%44el")
    for method, path, upgrade in itertools.product(("POST", "GET", "CONNECT"), paths, _UPGRADES):
        with contextlib.suppress(OSError), edge.connect(CLEAR) as connection:
            connection.sendall(_LINE.format(method, path, upgrade).encode() + _MESSAGE)
            connection.recv(65536)
    came = {(one.method, one.target) for one in edge.application.arrived}
    assert came == {("POST", "/s.Users/Get")}
