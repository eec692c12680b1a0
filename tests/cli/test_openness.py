"""The report of `up` about allowed callers after a change, compared with real calls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.conftest import Cli
from tests.local.running import Up, up


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with up(tmp_path_factory.mktemp("openness"), name="open", without=("cluster.yaml", "policies.yaml")) as running:
        yield running


def _server(port: int) -> str:
    return f"""\
---
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {{name: s{port}, namespace: shop}}
spec:
  podSelector: {{matchLabels: {{app: cart}}}}
  port: {port}
"""


def _is_open(cli: Cli, port: int) -> bool:
    words = ("--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", str(port))
    return cli("call", "--name", "open", *words).exit_code == 0


def test_the_ports_of_a_workload_are_separate(cli: Cli, mesh: Up) -> None:
    path = mesh.manifests / "servers.yaml"
    opened, closed = {"before": "allow-list", "now": "open"}, {"before": "open", "now": "allow-list"}
    path.write_text(_server(9090))
    assert mesh.until("enforced")["modes"] == {"shop/cart:9090": closed}
    assert (_is_open(cli, 8080), _is_open(cli, 9090)) == (True, False)
    path.write_text(_server(8080) + _server(9090))
    assert mesh.until("enforced")["modes"] == {"shop/cart:8080": closed}
    assert (_is_open(cli, 8080), _is_open(cli, 9090)) == (False, False)
    path.write_text(_server(9090))
    while not (event := mesh.until("enforced"))["removed"]:
        pass
    assert event["modes"] == {"shop/cart:8080": opened}
    assert (_is_open(cli, 8080), _is_open(cli, 9090)) == (True, False)
    path.unlink()
    assert mesh.until("enforced")["modes"] == {"shop/cart:9090": opened}
    assert (_is_open(cli, 8080), _is_open(cli, 9090)) == (True, True)
    path.write_text(_server(8080) + _server(9090))
    assert mesh.until("enforced")["modes"] == {"shop/cart": closed}
