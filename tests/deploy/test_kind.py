"""The guide docs/guides/kind.md: its installation and manifests are accepted, and its pods can have a sidecar."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from eastgate._version import __version__
from eastgate.controller.injection import InjectionOptions, inject
from tests.deploy.charts import ROOT, helm
from tests.programs import ApiServer

_PAGE = ROOT / "docs" / "guides" / "kind.md"
_SHOP = ROOT / "examples" / "kind" / "shop.yaml"
_CONTEXT = ["--context", "kind-eastgate"]


def commands(program: str) -> Iterator[list[str]]:
    """Yield the words after the name of a program, for each of its commands in the page."""
    for block in re.findall(r"^```sh\n(.*?)^```", _PAGE.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            if words[0] == program:
                yield words[1:]


def deployments() -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(_SHOP.read_text()) if each["kind"] == "Deployment"]


def test_the_chart_and_the_shop_run_the_image_that_is_built_and_loaded() -> None:
    image = f"eastgate:{__version__}"
    (build,) = (words for words in commands("docker") if words[0] == "build")
    (load,) = (words for words in commands("kind") if words[0] == "load")
    ((_, name, chart, *options),) = commands("helm")
    assert (build[build.index("-t") + 1], load[2]) == (image, image)
    assert f'image: "{image}"' in helm("template", name, ROOT / chart, *options)
    pods = [each["spec"]["template"]["spec"] for each in deployments()]
    assert {container["image"] for pod in pods for container in pod["containers"]} == {image}


def test_every_pod_of_the_shop_gets_a_sidecar_that_sees_its_connections() -> None:
    for deployment in deployments():
        template = deployment["spec"]["template"]
        metadata = {"name": "x", "namespace": "shop", **template["metadata"]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        injected = inject(pod, InjectionOptions())
        assert injected is not None
        users = {container["securityContext"].get("runAsUser") for container in injected["spec"]["initContainers"]}
        assert template["spec"]["securityContext"]["runAsUser"] not in users  # the user of the image is the sidecar's


@pytest.mark.apiserver
def test_applied_objects_are_accepted_and_awaited_objects_exist(own_api_server: ApiServer) -> None:
    own_api_server.install("eastgate")
    for context, name, *words in commands("kubectl"):
        assert [context, name] == _CONTEXT
        if words[0] == "apply":
            own_api_server.kubectl("apply", "-f", str(ROOT / words[2]))
    for _, _, *words in commands("kubectl"):
        if words[2:4] == ["rollout", "status"] and words[1] == "shop":
            own_api_server.get(words[4], "-n", "shop")
        if words[2] in ("exec", "wait"):
            own_api_server.get(words[3].replace("deploy/", "deployment/"), "-n", "shop")
