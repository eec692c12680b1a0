"""The definitions on a real API server: it accepts them, and decides about policies as Eastgate and its model do."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from urllib.parse import quote

import pytest
import yaml

from eastgate.cluster.names import dns_label_problem
from eastgate.reports.crds import admission_policies, definitions
from eastgate.settings import MeshMode
from tests.programs import ApiServer
from tests.reports.crds.api_server import Schema, refusals
from tests.reports.crds.corpus import ROOT, Sample, samples
from tests.reports.crds.test_agreement import GONE, excuse, told

pytestmark = pytest.mark.apiserver

_WAIT_SECONDS = 60
_CANARY: Schema = {
    "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
    "kind": "AuthorizationPolicy",
    "metadata": {"name": "canary", "namespace": "default"},
    "spec": {
        "action": "ALLOW",
        "enforcementLevel": "APPLICATION",
        "targetRefs": [{"group": "", "kind": "Service", "name": "canary"}],
    },
}


def written(*options: str) -> str:
    """Return the output of `eastgate crds`."""
    command = [sys.executable, "-m", "eastgate", "crds", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def all_versions() -> list[Schema]:
    """Return the definitions with every version served. No object is stored here, so none needs to be converted."""
    made = copy.deepcopy(definitions())
    for one in made:
        for version in one["spec"]["versions"]:
            version["served"] = True
    return made


def answer(server: ApiServer, manifest: Schema) -> str | None:
    """Return the reason why the server refuses to create an object, or None."""
    group, _, version = str(manifest["apiVersion"]).partition("/")
    (definition,) = [
        one["spec"]
        for one in definitions()
        if (one["spec"]["group"], one["spec"]["names"]["kind"]) == (group, manifest["kind"])
    ]
    metadata = manifest.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    inside = "" if definition["scope"] == "Cluster" else f"/namespaces/{quote(str(namespace or 'default'), safe='')}"
    path = f"/apis/{group}/{version}{inside}/{definition['names']['plural']}"
    status, answered = server.request("POST", f"{path}?dryRun=All&fieldValidation=Ignore", manifest)
    return None if status == 201 else str(answered["message"])


@cache
def unseen() -> dict[tuple[str, str], str]:
    """Return the manifests that a server accepts though Eastgate rejects them, by file and name, with the reason."""
    path = ROOT / "tests" / "reports" / "crds" / "unseen.yaml"
    reasons = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {(file, name): why for why, files in reasons.items() for file, names in files.items() for name in names}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Start a server of its own, because admission policies apply in every namespace."""
    with ApiServer(tmp_path_factory.mktemp("definitions")) as own:
        own.apply(*all_versions())
        names = {one.manifest.get("metadata", {}).get("namespace") for one in samples()} - {"default", None}
        valid = sorted(name for name in names if isinstance(name, str) and dns_label_problem(name) is None)
        for name in valid:
            own.create("/api/v1/namespaces", {"metadata": {"name": name}})
        yield own


def enforce(server: ApiServer, mode: MeshMode) -> None:
    """Put the admission policies of a mode into force, which takes a second or two."""
    server.apply(*admission_policies(mode))
    end = time.monotonic() + _WAIT_SECONDS
    while (answer(server, _CANARY) is None) is not (mode is MeshMode.AMBIENT):
        assert time.monotonic() < end, f"the admission policies of {mode} are not in force"
        time.sleep(0.2)


def test_the_documented_pipes_work(server: ApiServer) -> None:
    assert server.kubectl("apply", "--server-side", "-f", "-", stdin=written()).count("serverside-applied") == 8
    for mode in MeshMode:
        applied = server.kubectl("apply", "--server-side", "-f", "-", stdin=written("--admission", mode))
        assert applied.count("serverside-applied") == len(admission_policies(mode))


@pytest.mark.parametrize("mode", MeshMode)
def test_the_server_decides_as_eastgate_does(server: ApiServer, mode: MeshMode) -> None:
    server.apply(*all_versions())
    enforce(server, mode)
    mine = [sample for sample in samples() if sample.mode is mode]
    answers: list[tuple[Sample, str | None]] = [(sample, answer(server, sample.manifest)) for sample in mine]
    refused = [told(sample, [why]) for sample, why in answers if why is not None and not sample.errors]
    assert refused == []
    accepted = {sample.source for sample, why in answers if why is None and sample.errors}
    assert accepted == {sample.source for sample in mine if sample.source in unseen()}
    model = [
        told(sample, [str(why)])
        for sample, why in answers
        if bool(why) != bool(refusals(sample.manifest, mode)) and not is_of_its_metadata(sample)
    ]
    assert model == []


def test_each_manifest_that_the_server_accepts_is_listed_with_the_reason() -> None:
    """`unseen.yaml` names existing policies, each with the one reason that all its errors share."""
    by_source = {sample.source: sample for sample in samples() if sample.errors}
    reasons = {source: {excuse(error, by_source[source]) for error in by_source[source].errors} for source in unseen()}
    assert reasons == {source: {GONE[why]} for source, why in unseen().items()}


def is_of_its_metadata(sample: Sample) -> bool:
    """Return whether it is about names or labels, which a server checks and the model does not."""
    return bool(sample.errors) and all(excuse(error, sample) == GONE["metadata"] for error in sample.errors)


def fields_of(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Yield each field of a schema, by the path that `kubectl explain` accepts."""
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}.{name}", inner
        for entry in (inner, inner.get("items", {}), inner.get("additionalProperties", {})):
            yield from fields_of(entry, f"{path}.{name}")


def type_of(schema: Schema) -> str:
    """Return the name of a type in `kubectl explain`."""
    if "items" in schema:
        return f"[]{type_of(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map[string]{type_of(schema['additionalProperties'])}"
    return str(schema.get("type", "Object")).replace("object", "Object")


@pytest.mark.parametrize("one", definitions(), ids=lambda one: str(one["spec"]["names"]["kind"]))
def test_kubectl_explains_every_field(server: ApiServer, one: Schema) -> None:
    plural, version = one["spec"]["names"]["plural"], one["spec"]["versions"][0]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    options = f"--api-version={one['spec']['group']}/{version['name']}"
    assert "<no description>" not in server.kubectl("explain", f"{plural}.spec", options)
    listed = server.kubectl("explain", f"{plural}.spec", options, "--recursive").splitlines()
    shown = {tuple(line.split()[:2]) for line in listed}
    missing = [
        path
        for path, schema in fields_of(spec, "spec")
        if (path.rpartition(".")[2], f"<{type_of(schema)}>") not in shown
    ]
    assert missing == []


CONDITIONS = [
    {
        "type": "Accepted",
        "status": status,
        "reason": reason,
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    for status, reason in (("True", "Accepted"), ("False", "TargetNotFound"))
]


def test_columns_show_every_target_with_its_problem(server: ApiServer) -> None:
    targets = [{"group": "", "kind": "Service", "name": name} for name in ("reviews", "ratings")]
    policy = copy.deepcopy(_CANARY) | {"metadata": {"name": "two", "namespace": "default"}}
    policy["spec"] = {"action": "ALLOW", "targetRefs": targets}
    server.apply(policy)
    kind = "authorizationpolicies.gateway.networking.x-k8s.io"
    try:
        shown = server.kubectl("get", kind, "two", "--no-headers")
        assert "reviews" in shown
        assert "ratings" in shown
        ancestors = [
            {"ancestorRef": target, "controllerName": "eastgate.dev/test", "conditions": [condition]}
            for target, condition in zip(targets, CONDITIONS, strict=True)
        ]
        status = json.dumps({"status": {"ancestors": ancestors}})
        server.kubectl("patch", kind, "two", "--subresource=status", "--type=merge", "-p", status)
        assert "TargetNotFound" in server.kubectl("get", kind, "two", "--no-headers")
        assert "eastgate.dev/test" in server.kubectl("get", kind, "two", "--no-headers", "-o", "wide")
        assert "two" in server.kubectl("get", "authzpol", "--no-headers")
        assert "/two" in server.kubectl("get", "eastgate", "-o", "name")
    finally:
        server.kubectl("delete", kind, "two")


def test_the_largest_policy_on_tools_is_taken(server: ApiServer) -> None:
    """Every object that the schema allows is cheap enough to be checked."""
    tools = [f"{'b' * 253}/{number:0128}" for number in range(256)]
    rules = [
        {
            "name": f"rule-{number}",
            "source": {"type": "ServiceAccount", "serviceAccount": {"name": "agent"}},
            "authorization": {"type": "InlineTools", "tools": tools},
        }
        for number in range(10)
    ]
    policy: Schema = {
        "apiVersion": "agentic.prototype.x-k8s.io/v0alpha0",
        "kind": "XAccessPolicy",
        "metadata": {"name": "largest", "namespace": "default"},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gateway"}],
            "rules": rules,
        },
    }
    assert answer(server, policy) is None


def test_the_largest_auth_policy_is_taken(server: ApiServer) -> None:
    schemes = [
        {"hosts": [f"h{number}.s{scheme}.example.com" for number in range(24)], "identity": [_API_KEY]}
        for scheme in range(32)
    ]
    policy: Schema = {
        "apiVersion": "apim.kuadrant.io/v1alpha1",
        "kind": "AuthPolicy",
        "metadata": {"name": "largest", "namespace": "default"},
        "spec": {
            "targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gateway"},
            "authSchemes": schemes,
        },
    }
    assert answer(server, policy) is None


_API_KEY: Schema = {
    "name": "keys",
    "apiKey": {"selector": {"matchLabels": {f"l{n}.example.com/a": "b" for n in range(64)}}},
}
