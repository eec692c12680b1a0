"""The certificates of a mesh and other ways to identify callers: the effect of the options of `up`."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from eastgate import Settings
from eastgate.cli import main
from eastgate.cli.identities import Identities
from eastgate.control.identity import EmbeddedCa, WorkloadApi

SETTINGS = Settings()
ISSUER = "https://i.example"


def identities(**given: Any) -> Identities:
    nothing: dict[str, Any] = {
        "ca": None,
        "spire": None,
        "federate": (),
        "by_address": False,
        "token_issuer": None,
        "token_keys": None,
        "token_audience": (),
        "token_claim": "sub",
    }
    return Identities(**{**nothing, **given})


def test_without_options_the_authority_ends_with_the_mesh() -> None:
    assert identities().source(SETTINGS) is None
    assert identities().tokens(SETTINGS) is None
    assert identities(federate=("partner.example",)).stand_ins == ("partner.example",)


def test_an_authority_in_a_folder_has_the_same_root_after_a_restart(tmp_path: Path) -> None:
    kept = identities(ca=str(tmp_path / "ca"))
    first, second = kept.source(SETTINGS), kept.source(SETTINGS)
    assert isinstance(first, EmbeddedCa)
    assert isinstance(second, EmbeddedCa)
    assert first.bundles.pem("cluster.local") == second.bundles.pem("cluster.local")
    [kept_file] = (tmp_path / "ca").iterdir()
    assert stat.S_IMODE(kept_file.stat().st_mode) == 0o600


def test_a_bundle_is_trusted_as_it_is(tmp_path: Path) -> None:
    partner = EmbeddedCa("partner.example")
    bundle = tmp_path / "partner.pem"
    bundle.write_text(partner.bundles.pem("partner.example"))
    source = identities(federate=(f"partner.example={bundle}",)).source(SETTINGS)
    assert source is not None
    assert source.bundles.pem("partner.example") == partner.bundles.pem("partner.example")


def test_an_agent_stands_in_for_the_authority() -> None:
    assert isinstance(identities(spire="/run/agent.sock").source(SETTINGS), WorkloadApi)


def test_an_issuer_speaks_for_the_trust_domain(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"keys": []}')
    given = identities(token_issuer=ISSUER, token_keys=str(keys), token_audience=("mesh",))
    found = given.tokens(SETTINGS)
    assert found is not None
    assert (found.issuer, found.trust_domain, found.audiences) == (ISSUER, "cluster.local", ("mesh",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--spire", "/run/agent.sock", "--ca", "ca"], "a CA and a federation of its own"),
        (["--spire", "/run/agent.sock", "--federate", "a.example"], "a CA and a federation of its own"),
        (["--federate", "a.example=missing.pem"], "missing.pem"),
        (["--federate", "Not a domain"], "trust domain"),
        (["--token-issuer", "https://i.example"], "an issuer and its keys"),
        (["--token-issuer", "https://i.example", "--token-keys", "missing.json"], "missing.json"),
        (["--token-issuer", "https://i.example", "--token-keys", "list.json"], "JSON Web Key Set"),
    ],
)
def test_invalid_options_are_reported_before_anything_starts(tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: []}\n")
    there = [str(tmp_path / one) if one.endswith("list.json") else one for one in options]
    result = CliRunner().invoke(main, ["up", "-f", str(tmp_path / "pod.yaml"), *there])
    assert result.exit_code == 2
    assert message in result.output
