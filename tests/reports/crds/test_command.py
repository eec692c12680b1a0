"""`eastgate crds`: every change of its output shows in a golden. `pytest --update` rewrites the goldens."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from eastgate.cli import main

GOLDENS = Path(__file__).parent / "goldens"
COMMANDS = {
    "authorizationpolicies.yaml": ["--kind", "AuthorizationPolicy"],
    "xauthorizationpolicies.yaml": ["--kind", "XAuthorizationPolicy"],
    "clusterauthorizationpolicies.yaml": ["--kind", "ClusterAuthorizationPolicy"],
    "xaccesspolicies.yaml": ["--kind", "XAccessPolicy"],
    "xbackends.yaml": ["--kind", "XBackend"],
    "authpolicies.yaml": ["--kind", "AuthPolicy"],
    "admission-sidecar.yaml": ["--admission", "sidecar"],
    "admission-ambient.yaml": ["--admission", "ambient"],
    "clusterauthorizationpolicy.json": ["--json-schema", "--kind", "ClusterAuthorizationPolicy"],
    "meshtlsauthentication.json": ["--json-schema", "--kind", "MeshTLSAuthentication"],
}


def crds(*words: str) -> Result:
    return CliRunner().invoke(main, ["crds", *words], catch_exceptions=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_output_is_the_golden(name: str, update: bool) -> None:
    result = crds(*COMMANDS[name])
    assert result.exit_code == 0
    if update:
        GOLDENS.mkdir(exist_ok=True)
        (GOLDENS / name).write_text(result.stdout, encoding="utf-8")
    assert result.stdout == (GOLDENS / name).read_text(encoding="utf-8"), "run pytest with --update, and read it"


def test_every_golden_is_of_a_command() -> None:
    assert sorted(path.name for path in GOLDENS.iterdir()) == sorted(COMMANDS)


def test_yaml_and_json_say_the_same_in_the_order_of_names() -> None:
    written = list(yaml.safe_load_all(crds().stdout))
    assert json.loads(crds("-o", "json").stdout) == {"apiVersion": "v1", "kind": "List", "items": written}
    names = [one["metadata"]["name"] for one in written]
    assert names == sorted(names)


def test_a_kind_is_found_in_any_letter_case_and_may_be_one_of_several() -> None:
    written = yaml.safe_load_all(crds("--kind", "xbackend", "--kind", "AUTHPOLICY").stdout)
    assert [one["spec"]["names"]["kind"] for one in written] == ["AuthPolicy", "XBackend"]


def test_an_unknown_kind_is_an_error_that_names_the_known_ones() -> None:
    result = crds("--kind", "Server")
    assert result.exit_code == 2
    assert "there is no kind Server: write AuthPolicy, AuthorizationPolicy," in result.stderr


def test_admission_policies_of_one_kind() -> None:
    written = yaml.safe_load_all(crds("--admission", "ambient", "--kind", "XAuthorizationPolicy").stdout)
    assert {one["metadata"]["name"] for one in written} == {
        "xauthorizationpolicies.v1alpha1.gateway.networking.x-k8s.io"
    }


def test_a_converter_serves_the_superseded_version() -> None:
    (one,) = yaml.safe_load_all(crds("--kind", "AuthorizationPolicy", "--conversion-webhook", "mesh/convert").stdout)
    assert [version["served"] for version in one["spec"]["versions"]] == [True, True]
    assert one["spec"]["conversion"]["webhook"]["clientConfig"]["service"] == {
        "namespace": "mesh",
        "name": "convert",
        "path": "/convert",
    }


def test_a_converter_is_known_by_its_ca(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    ca = ["--conversion-ca", str(tmp_path / "ca.pem")]
    (one,) = yaml.safe_load_all(
        crds("--kind", "AuthorizationPolicy", "--conversion-webhook", "mesh/convert", *ca).stdout
    )
    bundle = one["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"]
    assert base64.b64decode(bundle) == b"-----BEGIN CERTIFICATE-----\n"
    assert "is for a --conversion-webhook" in crds(*ca).stderr
    (tmp_path / "ca.pem").write_text("-----BEGIN PRIVATE KEY-----\n")
    for path in ("ca.pem", "nowhere.pem"):
        refused = crds("--conversion-webhook", "mesh/convert", "--conversion-ca", str(tmp_path / path))
        assert refused.exit_code == 2


@pytest.mark.parametrize("written", ["convert", "mesh/", "/convert", "a/b/c"])
def test_a_converter_is_named_with_its_namespace(written: str) -> None:
    result = crds("--conversion-webhook", written)
    assert result.exit_code == 2
    assert "write <namespace>/<name>" in result.stderr


def test_admission_and_schemas_do_not_go_together() -> None:
    assert crds("--admission", "sidecar", "--json-schema").exit_code == 2


def test_schemas_in_a_folder_are_where_tools_look_for_them(tmp_path: Path) -> None:
    result = crds("--json-schema", "--dir", str(tmp_path))
    assert result.stderr.endswith(f"files in {tmp_path}\n")
    schema = json.loads((tmp_path / "policy.linkerd.io" / "server_v1beta3.json").read_text(encoding="utf-8"))
    assert schema["title"] == "Server"
    assert "if" in json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))["allOf"][0]


def test_definitions_and_bindings_in_a_folder_have_a_file_each(tmp_path: Path) -> None:
    crds("--admission", "sidecar", "--kind", "XBackend", "--dir", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "xbackends.v0alpha0.agentic.prototype.x-k8s.io-binding.yaml",
        "xbackends.v0alpha0.agentic.prototype.x-k8s.io.yaml",
    ]
