"""The chart as Helm renders it, and the script that generates parts of the chart from the code."""

from __future__ import annotations

import copy
import importlib.util
import json
import subprocess
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from tests.missing import give_up
from tests.programs import find
from tests.programs.building import are_missing

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "chart" / "eastgate"
MANIFESTS = ROOT / "deploy" / "manifests"
NAMESPACE = "eastgate-system"

Object = dict[str, Any]


def helm_program() -> Path:
    """Return the path of Helm. Skip the test if Helm is not installed and cannot be built without Go."""
    if are_missing("helm"):
        give_up("Helm", "install it, or Go to build it")
    return find("helm")


def helm(*arguments: str | Path, values: Object | None = None, fails: bool = False) -> str:
    """Run Helm, with values if given, and return its output, or its errors with `fails`."""
    given = ["--values", "-"] if values is not None else []
    command = [helm_program(), *arguments, *given]
    done = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def render(values: Object | None = None, *arguments: str) -> list[Object]:
    """Return the objects of the chart."""
    return copy.deepcopy(_rendered(json.dumps(values or {}), *arguments))


@cache
def _rendered(values: str, *arguments: str) -> list[Object]:
    text = helm("template", "eastgate", CHART, "--namespace", NAMESPACE, *arguments, values=json.loads(values))
    return [each for each in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if each]


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [each for each in objects if each["kind"] == kind]


def load_generate() -> ModuleType:
    """Import deploy/generate.py."""
    spec = importlib.util.spec_from_file_location("deploy_generate", ROOT / "deploy" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
