"""A real API server calls the webhooks: the output of kubectl, the stored objects, and their form in each version."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from eastgate.control.identity import EmbeddedCa
from eastgate.controller.admission.changes import AdmissionJudgement, AdmissionRefusal, RequestedChange
from eastgate.controller.admission.configuration import mutating_configuration, validating_configuration
from eastgate.controller.admission.conversion import convert_object
from eastgate.controller.admission.conversion.objects import NARROWED
from eastgate.controller.admission.webhooks import CaBundleKeeper, Webhooks, with_ca_bundle
from eastgate.reading.kubernetes import connect
from eastgate.reports.crds import Webhook, definitions
from eastgate.settings import MeshMode
from tests.controller.admission.reviews import GROUP, Manifest, policy, rules
from tests.controller.admission.running import RunningWebhooks, run_webhooks
from tests.programs import ApiServer
from tests.reports.crds.corpus import Sample, samples

pytestmark = pytest.mark.apiserver

NAMESPACE = "admission"
OLD, NEW = f"{GROUP}/v1alpha1", f"{GROUP}/v1alpha2"
PLURAL = "authorizationpolicies"
_WAIT_SECONDS = 60


async def judge(change: RequestedChange) -> AdmissionJudgement:
    """Refuse objects of one name, in place of a judge of the cluster."""
    if change.name == "breaks-an-invariant":
        return AdmissionJudgement((AdmissionRefusal("payments is closed to sandbox", "spec.rules"),))
    return AdmissionJudgement(warnings=("sandbox/* can now reach payments:8443",) if change.name == "opens" else ())


def wait_until(done: Any) -> None:
    end = time.monotonic() + _WAIT_SECONDS
    while not done():
        assert time.monotonic() < end, "the API server does not ask the webhooks"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def webhooks() -> Iterator[RunningWebhooks]:
    with run_webhooks(Webhooks(judge=judge)) as running:
        yield running


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Yield an API server for this module only: its webhooks and definitions would affect other tests."""
    with ApiServer(tmp_path_factory.mktemp("api-server")) as server:
        yield server


@pytest.fixture(scope="module")
def server(api_server: ApiServer, webhooks: RunningWebhooks) -> ApiServer:
    made = definitions(webhooks.webhook)
    configurations = [validating_configuration(webhooks.webhook), without_injection(webhooks.webhook)]
    homes = {sample.manifest["metadata"].get("namespace") for sample in samples() if not sample.errors}
    namespaces = sorted({NAMESPACE, *filter(None, homes)} - {"default"})
    api_server.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in namespaces))
    api_server.apply(*made)
    api_server.apply(*configurations)
    wait_until(lambda: post(api_server, broken("canary"), dry=True)[0] == 422)
    wait_until(lambda: api_server.request("GET", path_of(OLD))[0] == 200)
    return api_server


CONFIGURATIONS = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")


def without_injection(webhook: Webhook) -> Manifest:
    """Return the mutating configuration for policies only, so that pods of other tests are not injected."""
    made = mutating_configuration(webhook)
    return made | {"webhooks": [each for each in made["webhooks"] if "inject" not in each["name"]]}


def broken(name: str) -> Manifest:
    """Return a policy with an error that the schema does not detect."""
    return named(policy(rules([{}]), annotations={"eastgate.dev/mode": "off"}), name)


def named(manifest: Manifest, name: str) -> Manifest:
    noted = {key: value for key, value in manifest["metadata"].items() if key in ("annotations", "labels")}
    return manifest | {"metadata": noted | {"name": name, "namespace": NAMESPACE}}


def path_of(version: str, name: str | None = None) -> str:
    path = f"/apis/{version}/namespaces/{NAMESPACE}/{PLURAL}"
    return path if name is None else f"{path}/{name}"


def post(server: ApiServer, manifest: Manifest, *, dry: bool = False) -> tuple[int, Any]:
    return server.request("POST", path_of(manifest["apiVersion"]) + ("?dryRun=All" if dry else ""), manifest)


def get(server: ApiServer, version: str, name: str) -> Manifest:
    status, answer = server.request("GET", path_of(version, name))
    assert status == 200, answer
    return dict(answer)


# Validation


def test_kubectl_shows_the_diagnostics(server: ApiServer) -> None:
    said = server.kubectl("apply", "-f", "-", stdin=json.dumps(broken("wrong")), fails=True)
    assert 'AuthorizationPolicy "wrong" is invalid' in said
    assert "metadata.annotations[eastgate.dev/mode]" in said
    assert "EG12" in said
    unknown = named(policy(rules([{"authorizationSource": {"serviceAccounts": ["*"]}}, {"ports": [1]}])), "wrong")
    said = server.kubectl("apply", "-f", "-", stdin=json.dumps(unknown), fails=True)
    assert said.splitlines() == [
        'The AuthorizationPolicy "wrong" is invalid: ',
        "* spec.rules[0].authorizationSource.serviceAccounts[0]: EG2025 `*` alone is not a service account; "
        "write <namespace>/* for each namespace, or leave the source out to match any caller",
        "* spec.rules[1].ports: EG1201 unknown field `ports` in a rule; write networkAttributes: {ports: [..]}",
    ]


def test_kubectl_prints_warnings(server: ApiServer) -> None:
    quiet = named(policy(rules([{"networkAttributes": {"ports": []}}])), "opens")
    done = server.try_kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(quiet))
    assert done.returncode == 0, done.stderr
    assert "Warning: EG6020 spec.rules[0].networkAttributes.ports" in done.stderr
    assert "Warning: sandbox/* can now reach payments:8443" in done.stderr
    server.kubectl("delete", f"{PLURAL}.{GROUP}", "opens", "-n", NAMESPACE)


def test_the_judge_refuses(server: ApiServer) -> None:
    manifest = named(policy(rules([{}])), "breaks-an-invariant")
    said = server.kubectl("apply", "-f", "-", stdin=json.dumps(manifest), fails=True)
    assert "spec.rules: Invalid value" in said or "payments is closed to sandbox" in said


def test_a_stored_policy_that_has_become_invalid_can_be_labelled_and_deleted(
    server: ApiServer, webhooks: RunningWebhooks
) -> None:
    for kind in CONFIGURATIONS:
        server.kubectl("delete", kind, "eastgate")
    wait_until(lambda: post(server, broken("stale"), dry=True)[0] == 201)
    assert post(server, broken("stale"))[0] == 201
    server.apply(validating_configuration(webhooks.webhook), without_injection(webhooks.webhook))
    wait_until(lambda: post(server, broken("canary"), dry=True)[0] == 422)
    server.kubectl("label", f"{PLURAL}.{GROUP}", "stale", "a=b", "-n", NAMESPACE)
    patch = json.dumps({"spec": {"action": "DENY"}})
    server.kubectl("patch", f"{PLURAL}.{GROUP}", "stale", "-n", NAMESPACE, "--type=merge", "-p", patch, fails=True)
    server.kubectl("delete", f"{PLURAL}.{GROUP}", "stale", "-n", NAMESPACE)


def test_the_server_refuses_everything_that_the_readers_refuse(server: ApiServer) -> None:
    wrong, unexplained = [], []
    for sample in samples():
        if sample.mode is not MeshMode.SIDECAR or not isinstance(sample.manifest.get("metadata"), dict):
            continue
        status, answer = create_anywhere(server, sample)
        if (status == 201) != (not sample.errors) and status != 404:
            wrong.append((sample.name, status, [error.code.id for error in sample.errors], answer.get("message")))
        if sample.errors and status != 201 and not any(said in answer["message"] for said in EXPLAINED):
            unexplained.append((sample.name, answer["message"]))
    assert [entry for entry in wrong if not entry[2]] == []
    assert unexplained == []
    unseen = {code for _, _, codes, _ in wrong for code in codes}
    assert unseen <= UNSEEN, [entry for entry in wrong if not set(entry[2]) <= UNSEEN]


EXPLAINED = (
    "EG",
    "cannot be handled as a",  # the server cannot decode it: odd metadata, and unknown fields on request of a client
    "not found",  # the namespace
)
UNSEEN = {
    "EG1204",  # the server drops an annotation that is null
    "EG1210",  # likewise the namespace of a cluster-scoped kind
}


def create_anywhere(server: ApiServer, sample: Sample) -> tuple[int, Any]:
    group, _, version = str(sample.manifest["apiVersion"]).partition("/")
    (definition,) = [
        each["spec"]
        for each in definitions()
        if (each["spec"]["group"], each["spec"]["names"]["kind"]) == (group, sample.manifest["kind"])
    ]
    namespace = sample.manifest["metadata"].get("namespace") or "default"
    inside = "" if definition["scope"] == "Cluster" else f"/namespaces/{quote(str(namespace), safe='')}"
    path = f"/apis/{group}/{version}{inside}/{definition['names']['plural']}"
    return server.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", sample.manifest)


# Conversion


def stored(version: str) -> list[Manifest]:
    """Return every valid policy of conformance tables and examples in one version, each with its own name."""
    chosen = [
        sample.manifest
        for sample in samples()
        if sample.manifest["apiVersion"] == version
        and sample.manifest["kind"] == "AuthorizationPolicy"
        and not sample.errors
        and sample.mode is MeshMode.SIDECAR
    ]
    prefix = version.rpartition("/")[2]
    return [named(manifest, f"{prefix}-{number}") for number, manifest in enumerate(chosen)]


def bare(manifest: Manifest) -> Manifest:
    """Return the part of an object that its author wrote."""
    metadata = manifest["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "annotations") if metadata.get(key)}
    return {"apiVersion": manifest["apiVersion"], "metadata": kept, "spec": manifest["spec"]}


def test_lists_of_v1alpha1_have_every_policy_of_v1alpha2(server: ApiServer) -> None:
    written = {each["metadata"]["name"]: each for each in stored(NEW)}
    assert len(written) > 100
    for manifest in written.values():
        status, answer = post(server, manifest)
        assert status == 201, answer["message"]
    listed = server.get(f"{PLURAL}.v1alpha1.{GROUP}", "-n", NAMESPACE)["items"]
    forms = {each["metadata"]["name"]: each for each in listed}
    assert forms.keys() >= written.keys()
    narrowed = 0
    for name, manifest in written.items():
        assert bare(convert_object(forms[name], NEW)) == bare(manifest)
        narrowed += NARROWED in forms[name]["metadata"].get("annotations", {})
    assert narrowed > 10
    kept = {
        each["metadata"]["name"]: each for each in server.get(f"{PLURAL}.v1alpha2.{GROUP}", "-n", NAMESPACE)["items"]
    }
    assert {name: bare(kept[name]) for name in written} == {name: bare(each) for name, each in written.items()}
    assert server.kubectl("get", f"{PLURAL}.v1alpha1.{GROUP}", "-n", NAMESPACE).count("\n") > len(written)


def test_policies_of_v1alpha1_come_back_as_they_were_written(server: ApiServer) -> None:
    written = stored(OLD)
    assert len(written) > 10
    for manifest in written:
        status, answer = post(server, manifest)
        assert status == 201, answer["message"]
        name = manifest["metadata"]["name"]
        assert bare(get(server, OLD, name)) == bare(manifest)
        assert get(server, NEW, name)["spec"] == convert_object(manifest, NEW)["spec"]
    crd = server.get("crd", f"{PLURAL}.{GROUP}")
    assert crd["status"]["storedVersions"] == ["v1alpha2"]


def test_an_edit_in_the_old_version_is_stored(server: ApiServer) -> None:
    old = convert_object(named(policy(rules([{}])), "edited"), OLD)
    old["spec"]["tcpRules"] = [{"sources": [{"namespaces": ["a"]}, {"namespaces": ["b"]}]}]
    server.kubectl("apply", "-f", "-", stdin=json.dumps(old))
    accounts = get(server, NEW, "edited")["spec"]["rules"][0]["authorizationSource"]
    assert accounts == {"serviceAccounts": ["a/*", "b/*"]}
    old["spec"]["tcpRules"][0]["attributes"] = [{"ports": [80]}]
    server.kubectl("apply", "-f", "-", stdin=json.dumps(old))
    rule = get(server, NEW, "edited")["spec"]["rules"][0]
    assert rule == {"authorizationSource": accounts, "networkAttributes": {"ports": [80]}}
    assert get(server, OLD, "edited")["spec"] == old["spec"]


def test_a_label_in_the_old_version_leaves_the_policy_as_it_is(server: ApiServer) -> None:
    spec = rules([{"applicationAttributes": {"paths": ["/api"]}}]) | {"enforcementLevel": "APPLICATION"}
    assert post(server, named(policy(spec), "deep"))[0] == 201
    resource = f"{PLURAL}.v1alpha1.{GROUP}"
    assert NARROWED in get(server, OLD, "deep")["metadata"]["annotations"]
    server.kubectl("label", resource, "deep", "a=b", "-n", NAMESPACE)
    after = get(server, NEW, "deep")
    assert after["spec"] == spec
    assert after["metadata"]["labels"] == {"a": "b"}
    assert "annotations" not in after["metadata"]
    patch = json.dumps({"spec": {"tcpRules": [{"attributes": [{"ports": [80]}]}]}})
    server.kubectl("patch", resource, "deep", "-n", NAMESPACE, "--type=merge", "-p", patch)
    edited = get(server, NEW, "deep")["spec"]
    assert edited == {
        "targetRefs": spec["targetRefs"],
        "action": "DENY",
        "rules": [{"networkAttributes": {"ports": [80]}}],
    }


NUMBER = "9" * 30
HOSTILE = (
    "NaN",
    '{"targetRefs": Infinity}',
    f'{{"targetRefs": {NUMBER}}}',
    '{"action": "DENY", "action": "ALLOW"}',
    '{"action": "\\ud800"}',
    '{"rules": ' + "[" * 5000 + "]" * 5000 + "}",
    "5",
)


@pytest.mark.parametrize("home", ["kube-system", NAMESPACE])
def test_an_annotation_of_one_policy_does_not_break_lists_of_all(server: ApiServer, home: str) -> None:
    closed = {"targetRefs": [{"group": "", "kind": "Pod", "selector": {}}], "action": "DENY", "rules": [{}]}
    names = [f"hostile-{number}" for number in range(len(HOSTILE))]
    policies, held = f"/apis/{NEW}/namespaces/{home}/{PLURAL}", "eastgate.dev/v1alpha1-spec"
    try:
        for name, text in zip(names, HOSTILE, strict=True):
            metadata = {"name": name, "namespace": home, "finalizers": ["example.com/hold"]}
            assert server.request("POST", policies, policy(closed) | {"metadata": metadata})[0] == 201
            assert server.request("DELETE", f"{policies}/{name}")[0] == 200  # kube-system is never sent to webhooks
            noted = {"metadata": {"annotations": {held: text}}}
            assert server.request("PATCH", f"{policies}/{name}", noted)[0] == 200
        status, listed = server.request("GET", f"/apis/{OLD}/{PLURAL}")
        assert status == 200, listed
        forms = {each["metadata"]["name"]: each for each in listed["items"] if each["metadata"]["namespace"] == home}
        assert forms.keys() >= set(names)
        for name in names:
            assert forms[name]["spec"] == {"targetRefs": closed["targetRefs"][0], "action": "DENY", "tcpRules": [{}]}
        if home == NAMESPACE:
            worse = {"metadata": {"annotations": {held: '{"targetRefs": 5}'}}}
            assert server.request("PATCH", f"{policies}/{names[0]}", worse)[0] == 422
    finally:
        for name in names:
            server.request("PATCH", f"{policies}/{name}", {"metadata": {"finalizers": []}})
            server.request("DELETE", f"{policies}/{name}")


def test_an_object_that_is_nested_too_deeply_does_not_break_lists_of_all(server: ApiServer) -> None:
    fields = '{"f:x":' * 3000 + "{}" + "}" * 3000
    entry = {"manager": "deep", "operation": "Update", "apiVersion": NEW, "fieldsType": "FieldsV1", "fieldsV1": "@"}
    manifest = policy(rules([{}]), name="deep-fields", namespace="kube-system")  # not sent to webhooks
    text = json.dumps(manifest | {"metadata": manifest["metadata"] | {"managedFields": [entry]}})
    server.kubectl("create", "-f", "-", stdin=text.replace('"@"', fields))
    try:
        stored = server.kubectl(
            "get",
            f"{PLURAL}.v1alpha2.{GROUP}",
            "-n",
            "kube-system",
            "deep-fields",
            "-o",
            "yaml",
            "--show-managed-fields",
        )
        assert stored.count("f:x") > 1000
        assert "/deep-fields" in server.kubectl("get", f"{PLURAL}.v1alpha1.{GROUP}", "-n", "kube-system", "-o", "name")
    finally:
        server.kubectl("delete", f"{PLURAL}.{GROUP}", "deep-fields", "-n", "kube-system")


# Trust


def test_the_ca_bundle_is_put_back(server: ApiServer, webhooks: RunningWebhooks) -> None:
    resources = [*((kind, "eastgate") for kind in CONFIGURATIONS), ("crd", f"{PLURAL}.{GROUP}")]

    async def write() -> int:
        async with connect(server.kubeconfig) as connection:
            return await CaBundleKeeper(connection, lambda: webhooks.certificates).write()

    assert asyncio.run(write()) == 0
    for kind, name in resources:
        foreign = with_ca_bundle(server.get(kind, name), EmbeddedCa("cluster.local").bundles.pem("cluster.local"))
        server.kubectl("replace", "-f", "-", stdin=json.dumps(foreign))
    assert asyncio.run(write()) == len(resources)
    assert asyncio.run(write()) == 0

    async def keep() -> None:
        """Change the caBundle while the keeper waits, notify the keeper, and wait until it restores the caBundle."""
        async with connect(server.kubeconfig) as connection:
            keeper = CaBundleKeeper(connection, lambda: webhooks.certificates)
            running = asyncio.create_task(keeper.run(seconds=600))
            try:
                changed = with_ca_bundle(server.get(*resources[0]), EmbeddedCa("td").bundles.pem("td"))
                await asyncio.to_thread(server.kubectl, "replace", "-f", "-", stdin=json.dumps(changed))
                while with_ca_bundle(await asyncio.to_thread(server.get, *resources[0]), webhooks.certificates):
                    keeper.write_soon()
                    await asyncio.sleep(0.2)
            finally:
                running.cancel()

    asyncio.run(asyncio.wait_for(keep(), _WAIT_SECONDS))
    wait_until(lambda: post(server, broken("canary"), dry=True)[0] == 422)
    wait_until(lambda: server.request("GET", path_of(OLD))[0] == 200)
