"""The definitions on a real API server: it takes them, and it decides about policies as Eastgate and its model do."""

from __future__ import annotations

import copy
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from eastgate.crds import admission_policies, definitions
from eastgate.settings import MeshMode
from eastgate.world.names import dns_label_problem
from tests.crds.api_server import Schema, refusals
from tests.crds.corpus import Sample, samples
from tests.crds.test_agreement import GONE, excuse, told
from tests.programs import ApiServer

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
    """What `eastgate crds` writes."""
    command = [sys.executable, "-m", "eastgate", "crds", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def all_versions() -> list[Schema]:
    """The definitions with every version served. Nothing is stored here, so nothing needs to be converted."""
    made = copy.deepcopy(definitions())
    for one in made:
        for version in one["spec"]["versions"]:
            version["served"] = True
    return made


def answer(server: ApiServer, manifest: Schema) -> str | None:
    """Why the server refuses to create an object; None where it would."""
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


@pytest.fixture(scope="module")
def server(api_server: ApiServer) -> Iterator[ApiServer]:
    api_server.apply(*all_versions())
    names = {one.manifest.get("metadata", {}).get("namespace") for one in samples()} - {"default", None}
    for name in sorted(name for name in names if isinstance(name, str) and dns_label_problem(name) is None):
        api_server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield api_server
    api_server.kubectl("delete", "crd", *(one["metadata"]["name"] for one in definitions()))


def enforce(server: ApiServer, mode: MeshMode) -> None:
    """Put the admission policies of a mode into force, which takes a second or two."""
    server.apply(*admission_policies(mode))
    end = time.monotonic() + _WAIT_SECONDS
    while (answer(server, _CANARY) is None) is not (mode is MeshMode.AMBIENT):
        assert time.monotonic() < end, f"the admission policies of {mode} are not in force"
        time.sleep(0.2)


def test_the_documented_pipes_work(api_server: ApiServer) -> None:
    assert api_server.kubectl("apply", "--server-side", "-f", "-", stdin=written()).count("serverside-applied") == 6
    for mode in MeshMode:
        applied = api_server.kubectl("apply", "--server-side", "-f", "-", stdin=written("--admission", mode))
        assert applied.count("serverside-applied") == len(admission_policies(mode))


@pytest.mark.parametrize("mode", MeshMode)
def test_the_server_decides_as_eastgate_does(server: ApiServer, mode: MeshMode) -> None:
    enforce(server, mode)
    mine = [sample for sample in samples() if sample.mode is mode]
    answers: list[tuple[Sample, str | None]] = [(sample, answer(server, sample.manifest)) for sample in mine]
    wrong: list[Any] = [told(sample, [why]) for sample, why in answers if why is not None and not sample.errors]
    wrong += [
        told(sample, [])
        for sample, why in answers
        if why is None and any(excuse(error, sample) is None for error in sample.errors)
    ]
    assert wrong == []
    model = [
        told(sample, [str(why)])
        for sample, why in answers
        if bool(why) != bool(refusals(sample.manifest, mode)) and not is_of_its_metadata(sample)
    ]
    assert model == []


def is_of_its_metadata(sample: Sample) -> bool:
    """The model does not check names and labels, which a server does."""
    return bool(sample.errors) and all(excuse(error, sample) == GONE["metadata"] for error in sample.errors)
