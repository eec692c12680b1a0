"""A Backend is no policy: this dialect reads it, and it is part of the cluster."""

from __future__ import annotations

import pytest

from eastgate import dialects
from eastgate.cluster import Backend, LiveWorld
from tests.dialects.accesspolicy.reading import FORMS, backend_manifest, judge_backend
from tests.dialects.reading import document


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["XBackend", "Backend"])
def test_the_least_is_a_service_and_a_port(form: str, kind: str) -> None:
    text = backend_manifest("{serviceName: payments, port: 8080}", form, kind)
    assert not dialects.is_policy(document(text))
    read, found = judge_backend(text)
    assert found == []
    group = FORMS[form].partition("/")[0]
    assert read == Backend("prod", "pay", "payments", None, 8080, "/mcp", group=group, kind=kind)


@pytest.mark.parametrize("port", [1, 65535])
def test_the_most_is_a_host_a_port_and_a_path(port: int) -> None:
    read, found = judge_backend(backend_manifest(f"{{hostname: payments.example.com, port: {port}, path: /v1/mcp}}"))
    assert found == []
    assert read is not None
    assert (read.service_name, read.hostname, read.port, read.path) == (None, "payments.example.com", port, "/v1/mcp")


def test_it_knows_its_line_and_its_namespace() -> None:
    read, _ = judge_backend("# a comment\n---\n" + backend_manifest("{serviceName: payments, port: 80}", where=""))
    assert read is not None
    assert read.span is not None
    assert (read.namespace, read.span.line) == ("default", 3)


def test_it_is_in_the_world_under_its_name() -> None:
    read, _ = judge_backend(backend_manifest("{serviceName: payments, port: 80}"))
    assert read is not None
    world = LiveWorld.of([read])
    assert world.backends == {"prod/pay": read}
    world.remove(read.id)
    assert world.backends == {}


REFUSED = [
    ("{port: 80}", "EG3024"),
    ("{serviceName: a, hostname: a.example, port: 80}", "EG3024"),
    ("{serviceName: a}", "EG1203"),
    ("{serviceName: a, port: 0}", "EG1206"),
    ("{serviceName: a, port: 65536}", "EG1206"),
    ("{serviceName: a.b, port: 80}", "EG1207"),
    ("{hostname: '*.example.com', port: 80}", "EG3029"),
    ("{hostname: 'a.example.com:80', port: 80}", "EG3029"),
    ("{hostname: '', port: 80}", "EG3029"),
    ("{serviceName: a, port: 80, path: mcp}", "EG3029"),
    ("{serviceName: a, port: 80, path: ''}", "EG3029"),
    ("{serviceName: a, port: 80, path: '/a?b'}", "EG3029"),
    ("{serviceName: null, port: 80}", "EG1204"),
    ("{service: a, port: 80}", "EG1201"),
    ("[]", "EG1202"),
]


@pytest.mark.parametrize(("mcp", "code"), REFUSED)
def test_a_backend_that_leads_nowhere_is_refused_for_one_reason(mcp: str, code: str) -> None:
    read, found = judge_backend(backend_manifest(mcp))
    assert read is None
    assert [(one.code.id, bool(one.help)) for one in found] == [(code, True)]
