"""Invalid hosts: the engine and a real proxy refuse them before any policy."""

from __future__ import annotations

import pytest

from eastgate.authority.questions import Question
from eastgate.local.calls import make_calls
from eastgate.local.machine.connection import CallConnection
from tests.attacks.frames import opening, request
from tests.faults.linkerd import route_for, server
from tests.faults.meshes import Running, running
from tests.faults.recorder import Recorder
from tests.faults.worlds import HTTP, Manifest, allow, sa, world

_NO_HOSTS = [
    *("admin.example:4294967296", "admin.example:65536", "admin.example:", "u@admin.example", "admin.example:+80"),
    *("a,b", "admin.example..", "[::1", "[1::2::3]", "a%2eb", "*.example", "admin.example:80:80"),
]
_HOSTS = ["admin.example", "ADMIN.example", "admin.example.", "admin.example:80", "Admin.Example.:65535"]


def _admin_for_bob() -> list[Manifest]:
    """Return policies that allow admin.example to bob, and all other hosts to alice."""
    route, *rest = route_for("special", "bob", {})
    route["spec"]["hostnames"] = ["admin.example"]
    return [
        *world(),
        server("HTTP/1"),
        *(route, *rest),
        *route_for("rest", "alice", {"path": {"type": "PathPrefix", "value": "/"}}),
    ]


async def _status(mesh: Running, host: str) -> int:
    question = Question.of("sa:shop/alice", "pod:shop/server", port=HTTP, method="GET", path="/", host=host)
    [made] = await make_calls(mesh.mesh, question)
    assert made.agrees, host
    assert made.called.status == made.decision.status, (host, made.decision.reason)
    return made.called.status


async def test_what_is_no_host_is_refused_and_a_host_is_compared_in_every_form() -> None:
    async with running(*_admin_for_bob()) as mesh:
        assert [(host, await _status(mesh, host)) for host in _NO_HOSTS] == [(host, 400) for host in _NO_HOSTS]
        assert [(host, await _status(mesh, host)) for host in _HOSTS] == [(host, 403) for host in _HOSTS]
        for host in ("other.example", "[::1]:80", "127.0.0.1", "xadmin.example", "admin.example.org", "a_b"):
            assert await _status(mesh, host) == 200, host


async def _exchange(mesh: Running, data: bytes, quiet: float = 0.3) -> bytes:
    """Send bytes as alice, from another address than the workload's, and return the bytes that come back."""
    tls = await mesh.mesh.certificates.context(sa("alice"))
    async with await CallConnection.open(mesh.target(), tls=tls, source_address="127.9.9.9") as connection:
        await connection.send(data)
        return (await connection.raw(quiet)).body


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\nhost: a\r\nhost: admin.example\r\n\r\n", b" 400 "),
        (b"GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n", b" 400 "),
        (b"GET / HTTP/1.1\r\n\r\n", b" 400 "),
        (b"GET / HTTP/1.0\r\n\r\n", b" 400 "),
        (b"GET / HTTP/1.1\r\nhost:\r\n\r\n", b" 400 "),
        (b"GET http://admin.example/ HTTP/1.1\r\nhost: a\r\n\r\n", b" 403 "),  # the host of the target counts
        (b"GET http://a/ HTTP/1.1\r\nhost: admin.example\r\n\r\n", b" 200 "),
        (b"GET http://u@admin.example/ HTTP/1.1\r\nhost: a\r\n\r\n", b" 403 "),  # Envoy removes the user
    ],
)
async def test_forms_of_requests(head: bytes, status: bytes) -> None:
    async with running(*_admin_for_bob()) as mesh:
        answer = await _exchange(mesh, head)
        assert status in answer.partition(b"\r\n")[0], answer


async def test_the_authority_counts_over_http2() -> None:
    """The application speaks no HTTP/2, so it counts the requests that reach it."""
    head = ((b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"))
    async with running(*_admin_for_bob(), apps={HTTP: (app := Recorder())}) as mesh:
        for named in (
            ((b":authority", b"admin.example"), (b"host", b"a")),
            ((b"host", b"admin.example:80"),),
            ((b":authority", b"admin.example:99999"),),
            ((b":authority", b"u@admin.example"),),
            ((b"host", b"a"), (b"host", b"b")),
        ):
            await _exchange(mesh, opening() + request(*head, *named), quiet=0.2)
            assert app.connections == 0, named
        await _exchange(
            mesh, opening() + request(*head, (b":authority", b"a:80"), (b"host", b"admin.example")), quiet=0.2
        )
        assert app.connections > 0


async def test_an_application_gets_the_host_as_it_was_sent() -> None:
    async with running(*_admin_for_bob(), apps={HTTP: (app := Recorder())}) as mesh:
        await _exchange(mesh, b"GET / HTTP/1.1\r\nhost: Other.Example.:8080\r\n\r\n", quiet=0.2)
        assert [value for name, value in app.arrived[0].headers if name.lower() == "host"] == ["Other.Example.:8080"]


async def test_where_nothing_reads_http_bytes_pass_as_they_are() -> None:
    async with running(*world(), allow("all", "alice")) as mesh:
        question = Question.of(
            "sa:shop/alice", "pod:shop/server", port=HTTP, method="GET", path="/", host="u@admin.example"
        )
        [made] = await make_calls(mesh.mesh, question)
        assert made.agrees
        assert made.decision.verdict == "allow"
