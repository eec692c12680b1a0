"""The webhook configurations as data, and their `caBundle`."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from eastgate import dialects
from eastgate.cli import main
from eastgate.control.identity import EmbeddedCa
from eastgate.controller.admission.configuration import converted_definitions, webhook_configurations
from eastgate.controller.admission.webhooks import with_ca_bundle
from eastgate.reports.crds import Webhook, definitions
from tests.programs import ApiServer

SERVICE = Webhook("eastgate-system", "eastgate", "pem")
VALIDATING, MUTATING = webhook_configurations(SERVICE)


def rules_of(configuration: dict[str, Any], on_failure: str) -> set[tuple[str, str, str]]:
    return {
        (group, version, resource)
        for webhook in configuration["webhooks"]
        if webhook["failurePolicy"] == on_failure
        for rule in webhook["rules"]
        for group in rule["apiGroups"]
        for version in rule["apiVersions"]
        for resource in rule["resources"]
    }


def test_every_kind_that_is_read_is_asked_about() -> None:
    asked = rules_of(VALIDATING, "Fail") | rules_of(VALIDATING, "Ignore")
    names = {(group, version) for group, version, _ in asked}
    assert {(kind.group, kind.version) for kind in dialects.registered().kinds} <= names


def test_webhooks_of_own_kinds_fail_closed() -> None:
    for definition in definitions(SERVICE):
        spec = definition["spec"]
        for version in spec["versions"]:
            key = (spec["group"], version["name"], spec["names"]["plural"])
            assert key in rules_of(VALIDATING, "Fail")
            assert key not in rules_of(VALIDATING, "Ignore")


def test_kinds_that_fail_closed_are_diagnosed_first() -> None:
    assert rules_of(MUTATING, "Ignore") == rules_of(VALIDATING, "Fail")


def test_names_of_resources_are_those_of_their_definitions() -> None:
    resources = {resource for _, _, resource in rules_of(VALIDATING, "Ignore")}
    for name in ("networkpolicies", "gateways", "httproutes", "peerauthentications", "authconfigs", "servers"):
        assert name in resources


def test_objects_of_kubernetes_are_asked_about_only_where_it_matters_and_never_waited_for() -> None:
    asked = {webhook["name"]: webhook for webhook in VALIDATING["webhooks"] if "matchConditions" in webhook}
    assert set(asked) == {
        f"{name}.eastgate.dev" for name in ("services", "namespaces", "pods", "bindings", "workloads")
    }
    for name, webhook in asked.items():
        assert webhook["failurePolicy"] == "Ignore"
        operations = {operation for rule in webhook["rules"] for operation in rule["operations"]}
        if name in ("pods.eastgate.dev", "workloads.eastgate.dev"):
            assert operations == {"UPDATE"}
        for group in {group for rule in webhook["rules"] for group in rule["apiGroups"]}:
            assert group in ("", "apps")
    others = [webhook for webhook in VALIDATING["webhooks"] if webhook["name"] not in asked]
    assert not {"", "apps"} & {group for webhook in others for rule in webhook["rules"] for group in rule["apiGroups"]}


def test_namespaces_that_the_cluster_needs_are_left_alone() -> None:
    for webhook in (*VALIDATING["webhooks"], *MUTATING["webhooks"]):
        (excluded, *_) = webhook["namespaceSelector"]["matchExpressions"]
        assert excluded["operator"] == "NotIn"
        assert excluded["values"] == ["eastgate-system", "kube-system"]
        assert webhook["sideEffects"] == "None"
        assert b64decode(webhook["clientConfig"]["caBundle"]) == b"pem"


def test_pods_are_not_created_without_the_injector() -> None:
    names = {webhook["name"] for webhook in MUTATING["webhooks"] if webhook["failurePolicy"] == "Fail"}
    assert names == {"namespace.inject.eastgate.dev", "pod.inject.eastgate.dev"}
    assert rules_of(MUTATING, "Fail") == {("", "v1", "pods")}


@pytest.mark.parametrize("manifest", [VALIDATING, MUTATING, *definitions(SERVICE)], ids=str)
def test_a_bundle_is_written_where_there_is_a_webhook(manifest: dict[str, Any]) -> None:
    assert with_ca_bundle(manifest, "pem") is None
    changed = with_ca_bundle(manifest, "other")
    has_webhook = "webhooks" in manifest or manifest["metadata"]["name"] in converted_definitions()
    assert (changed is not None) is has_webhook
    if changed is not None:
        assert with_ca_bundle(changed, "pem") == manifest


def test_the_command_prints_them() -> None:
    printed = CliRunner().invoke(main, ["crds", "--webhooks", "--conversion-webhook", "mesh/gate"])
    assert printed.exit_code == 0, printed.output
    assert list(yaml.safe_load_all(printed.stdout)) == webhook_configurations(Webhook("mesh", "gate"))
    assert CliRunner().invoke(main, ["crds", "--webhooks"]).exit_code == 2


def test_the_command_writes_files(tmp_path: Any) -> None:
    options = ["--webhooks", "--conversion-webhook", "mesh/gate", "--dir", str(tmp_path), "-o", "json"]
    assert CliRunner().invoke(main, ["crds", *options]).exit_code == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"validatingwebhookconfiguration.json", "mutatingwebhookconfiguration.json"}


@pytest.mark.apiserver
def test_a_server_takes_them(api_server: ApiServer) -> None:
    webhook = Webhook("eastgate-system", "eastgate", EmbeddedCa("cluster.local").bundles.pem("cluster.local"))
    for manifest in webhook_configurations(webhook):
        group, plural = manifest["apiVersion"], f"{manifest['kind'].lower()}s"
        status, answer = api_server.request(
            "POST", f"/apis/{group}/{plural}?dryRun=All&fieldValidation=Strict", manifest
        )
        assert status == 201, answer
