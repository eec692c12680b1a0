"""Short definitions of schemes, requests and servers for the tests."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from eastgate.cluster import Secret, Selector
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts, Services
from eastgate.dialects.kuadrant.authorino.model import (
    All,
    AnonymousAccess,
    ApiKeys,
    Authorization,
    Condition,
    Credentials,
    Identity,
    Pattern,
    PatternOperator,
    PatternRules,
    Scheme,
)
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement
from eastgate.ir import StepVerdict
from eastgate.ir.attributes import UNKNOWN, Unknown
from tests.patience import PATIENCE
from tests.reading.jwt.mint import NOW

NAMESPACE = "shop"
KEYS = Selector.of({"app": "shop"})


def request(
    path: str | Unknown = "/orders?x=1",
    headers: Mapping[str, str] | Unknown | None = None,
    *,
    method: str | Unknown = "GET",
    host: str | Unknown = "shop.example",
    **more: Any,
) -> RequestFacts:
    """Return a request whose attributes are all known, unless they are given as unknown."""
    known: dict[str, Any] = {
        "scheme": "https",
        "protocol": "HTTP/1.1",
        "principal": None,
        "address": "10.0.0.7",
        "port": 1234,
        "certificate": None,
        "destination": {},
        "size": 0,
        **more,
    }
    return RequestFacts(
        time=NOW, host=host, method=method, path=path, headers={} if headers is None else headers, **known
    )


def nothing_known() -> RequestFacts:
    return RequestFacts(time=NOW, metadata=UNKNOWN, body=UNKNOWN)


def pattern(text: str) -> Pattern:
    """Return a pattern for `selector operator value`."""
    selector, operator, value = (*text.split(" ", 2), "")[:3]
    return Pattern(selector, PatternOperator(operator), value)


def rule(condition: Condition | str, name: str = "rule", **more: Any) -> Authorization:
    found = pattern(condition) if isinstance(condition, str) else condition
    return Authorization(name, PatternRules(found), **more)


def scheme(*authorizations: Authorization, identities: Iterable[Identity] = (), **more: Any) -> Scheme:
    return Scheme(NAMESPACE, ("*",), tuple(identities), authorizations=authorizations, **more)


def everybody(name: str = "everybody", **more: Any) -> Identity:
    return Identity(name, AnonymousAccess(), **more)


def api_keys(name: str = "keys", credentials: Credentials | None = None, **more: Any) -> Identity:
    return Identity(name, ApiKeys(KEYS), credentials or Credentials(key="APIKEY"), **more)


def secret(name: str, key: str | None, labels: Mapping[str, str] | None = None, **data: str) -> Secret:
    held = {**({"api_key": key} if key is not None else {}), **data}
    return Secret(
        NAMESPACE,
        name,
        {"app": "shop"} if labels is None else labels,
        {"owner": name, "kubectl.kubernetes.io/last-applied-configuration": json.dumps(held)},
        {field_.replace("_crt", ".crt"): value.encode() for field_, value in held.items()},
    )


def holding(*secrets: Secret, **more: Any) -> Services:
    """Return services with these Secrets."""

    def selected(namespace: str | None, selector: Selector) -> Iterable[Secret]:
        return [each for each in secrets if namespace in (None, each.namespace) and selector.matches(each.labels)]

    def named(namespace: str, name: str) -> Secret | None:
        return next((each for each in secrets if (each.namespace, each.name) == (namespace, name)), None)

    return Services(secrets=selected, secret=named, **more)


def verdict(condition: Condition | str, facts: RequestFacts, **services: Any) -> StepVerdict:
    """Return the judgement of a scheme with one condition as its only rule."""
    found = evaluate(scheme(rule(condition)), facts, Services(**services))
    step = found.steps[-1]
    assert found.allowed is (step.verdict is StepVerdict.ACCEPTED)
    return step.verdict


def trail(judgement: Judgement) -> list[tuple[str, str]]:
    return [(step.name, str(step.verdict)) for step in judgement.steps]


def both(*parts: str) -> All:
    return All(tuple(pattern(part) for part in parts))


# A server


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Reply:
    body: object = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    wait: float = 0


class Backend(ThreadingHTTPServer):
    """Answers by path, and records the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies: dict[str, Reply] = {}
        self.asked: list[Asked] = []
        self.stop = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def all_asked(self, number: int) -> list[Asked]:
        """Return the requests, once there are so many.

        A client that gives up does not wait for its request to be recorded.
        """
        ends = time.monotonic() + PATIENCE
        while len(self.asked) < number and time.monotonic() < ends:
            time.sleep(0.01)
        return self.asked

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that close the connection, because some tests do this."""


class _Handler(BaseHTTPRequestHandler):
    server: Backend

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append(Asked(self.command, self.path, headers, body))
        reply = self.server.replies.get(self.path.partition("?")[0], Reply(status=404))
        self.server.stop.wait(reply.wait)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode())

    do_GET = do_POST = _answer  # noqa: N815 - the names in http.server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in http.server
        pass


@contextmanager
def backend() -> Iterator[Backend]:
    with Backend() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.stop.set()
            server.shutdown()
            thread.join()
