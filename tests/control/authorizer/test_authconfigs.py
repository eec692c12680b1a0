"""An Envoy that asks the authorizer instead of Authorino: AuthConfigs are found by the host of a request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.authorizer.proxies import Application, Authorizer, Envoy, running_application

pytestmark = pytest.mark.real

MANIFESTS = Path(__file__).parents[3] / "examples" / "authorino" / "manifests"
KEY = (("authorization", "APIKEY EXAMPLE-KEY-OF-A-FRIEND"),)
NONE: tuple[tuple[str, str], ...] = ()

# The host, the method, the headers, and what the client gets.
CALLS = [
    ("talker-api.example", "GET", KEY, 200),
    ("talker-api.example:8443", "GET", KEY, 200),
    ("talker-api.example", "DELETE", KEY, 403),
    ("talker-api.example", "GET", NONE, 401),
    ("Talker-API.example", "GET", KEY, 404),
    ("pages.example", "GET", NONE, 200),
    ("a.b.pages.example", "GET", NONE, 200),
    ("a.b.pages.example", "POST", NONE, 403),
    ("nobody.example", "GET", KEY, 404),
]


@pytest.fixture(scope="module")
def envoy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Envoy]:
    folder = tmp_path_factory.mktemp("authorino")
    manifests = "---\n".join(path.read_text() for path in sorted(MANIFESTS.iterdir()))
    application: Application
    with (
        running_application() as application,
        Authorizer(folder, manifests) as authorizer,
        Envoy(folder, authorizer, application) as running,
    ):
        yield running


@pytest.mark.parametrize("listener", ["grpc", "http"])
@pytest.mark.parametrize(("host", "method", "headers", "status"), CALLS)
def test_calls(
    envoy: Envoy, listener: str, host: str, method: str, headers: tuple[tuple[str, str], ...], status: int
) -> None:
    assert envoy.call(listener, None, "/greetings/1", host=host, method=method, headers=headers).status == status


@pytest.mark.parametrize(("headers", "status"), [(KEY, 200), (NONE, 401)])
def test_the_proxy_may_name_the_host_that_is_looked_up(
    envoy: Envoy, headers: tuple[tuple[str, str], ...], status: int
) -> None:
    assert envoy.call("grpc", None, "/greetings/1", host="named.example", headers=headers).status == status
