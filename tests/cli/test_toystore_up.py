"""The toy store with `eastgate up` and `eastgate call`, and what changes while it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.local.running import Up, up
from tests.local.toystore import GATEWAY, STAFF, write_manifests
from tests.programs.oidc_issuer import OidcIssuer

pytestmark = pytest.mark.real
KITES = "authorization=APIKEY EXAMPLE-KEY-PAPER-KITES"


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcIssuer]:
    with OidcIssuer(tmp_path_factory.mktemp("issuer")) as running:
        yield running


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory, issuer: OidcIssuer) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("toystore")
    write_manifests(folder / "source", issuer.url)
    with up(folder, name="toystore", source=folder / "source") as running:
        yield running


def call(cli: Cli, host: str, *words: str) -> dict[str, Any]:
    """Make a call as a client without a certificate."""
    where = ("--from", "anonymous", "--to", GATEWAY, "--host", f"{host}.toystore.com")
    [made] = json.loads(cli("call", "--name", "toystore", "-o", "json", *where, *words).stdout)["calls"]
    result: dict[str, Any] = made
    assert result["agrees"]
    assert result["engine"]["verdict"] == result["verdict"]
    return result


def test_a_call_sends_a_token(cli: Cli, mesh: Up, issuer: OidcIssuer, tmp_path: Path) -> None:
    allowed = call(cli, "admin", "/admin", "--token", issuer.token(**STAFF))
    assert (allowed["verdict"], allowed["status"]) == ("allow", 200)
    assert allowed["way"] == "HTTPRoute toystore/toystore rule 0 -> Service toystore/toystore"
    token = tmp_path / "token"
    token.write_text(issuer.token(**{**STAFF, "group": "visitors"}) + "\n")
    denied = call(cli, "admin", "/admin", "--token", f"@{token}")
    assert (denied["verdict"], denied["status"]) == ("deny", 403)
    while (decided := mesh.until("decided"))["status"] != 403:
        pass
    assert (decided["asked"], decided["decision"]) == (True, "403:AuthPolicy.apim.kuadrant.io/toystore/toystore#0")
    why = cli("why", "--name", "toystore", json.dumps(decided))
    assert "AuthPolicy/toystore/toystore" in why.stdout
    assert call(cli, "admin", "/admin")["status"] == 401
    assert call(cli, "shop", "/admin")["status"] == 404
    assert call(cli, "www", "/admin")["status"] == 302
    assert call(cli, "www", "/toys")["status"] == 200


def test_api_keys_follow_their_files(cli: Cli, mesh: Up) -> None:
    assert call(cli, "api", "/v1/toys", "--header", KITES)["status"] == 200
    mesh.edit("keys.yaml", "EXAMPLE-KEY-PAPER-KITES", "EXAMPLE-KEY-CHANGED")
    mesh.until("enforced")
    assert call(cli, "api", "/v1/toys", "--header", KITES)["status"] == 401
    mesh.edit("keys.yaml", "EXAMPLE-KEY-CHANGED", "EXAMPLE-KEY-PAPER-KITES")
    mesh.until("enforced")
    assert call(cli, "api", "/v1/toys", "--header", KITES)["status"] == 200


def test_a_token_is_the_header_authorization(cli: Cli) -> None:
    twice = cli("call", "--from", "anonymous", "--to", GATEWAY, "--token", "a", "--header", "Authorization=Bearer b")
    assert twice.exit_code == 2
    assert "leave out one of the two" in twice.stderr
    raw = cli("call", "--from", "anonymous", "--to", GATEWAY, "--raw", "--token", "a")
    assert raw.exit_code == 2
