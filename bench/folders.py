"""The speed of reading a whole folder that has few policies, as the folders of platforms do."""

from __future__ import annotations

import gc
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from bench.children import peak_bytes, run_child
from bench.report import Section
from bench.timing import clock
from eastgate.dialects.gep3779 import GROUP
from eastgate.manifests import read_manifests

__all__ = ["run", "write_folder"]

_MANIFESTS_PER_FILE = 5
_POLICY_SHARE = 0.01
_MAX_CPU_SECONDS = 600.0
_OTHERS = ("ConfigMap", "Deployment", "Service", "ServiceAccount", "RoleBinding", "HorizontalPodAutoscaler")
_VERSIONS = {
    "Deployment": "apps/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "AuthorizationPolicy": f"{GROUP}/v1alpha2",
}


def run(*, quick: bool) -> Section:
    """Measure a folder of YAML files in each size."""
    section = Section(
        "Reading a folder",
        "CPU us per manifest of a folder. One in a hundred manifests is a policy; the others are ConfigMaps, "
        f"Deployments, Services, accounts, bindings and autoscalers; {_MANIFESTS_PER_FILE} in a file. Other: PyYAML's "
        "CSafeLoader, to plain dicts. Each once, in a process of its own.",
        ("manifests", "files", "MB", "Eastgate us", "per second", "CSafeLoader us", "times", "Eastgate s",
         "Eastgate MB"),
    )  # fmt: skip
    for count in (500,) if quick else (10_000, 100_000):
        with TemporaryDirectory() as folder:
            size = write_folder(Path(folder), count)
            section.rows.append(_row(folder, count, size))
    return section


def _row(folder: str, count: int, size: int) -> list[str | float]:
    ours, theirs = (run_child("bench.folders", how, folder, str(count), seconds=_MAX_CPU_SECONDS) for how in _READERS)
    if ours is None or theirs is None:
        return [count, count // _MANIFESTS_PER_FILE, size / 1e6, f"over {_MAX_CPU_SECONDS:.0f} s", *[""] * 5]
    each, other = ours["seconds"] / count * 1e6, theirs["seconds"] / count * 1e6
    files = -(-count // _MANIFESTS_PER_FILE)
    return [count, files, size / 1e6, each, 1e6 / each, other, each / other, ours["seconds"], ours["bytes"] / 1e6]


def write_folder(folder: Path, count: int) -> int:
    """Write this many manifests, the same ones each time. Return their size in bytes."""
    chance = random.Random(7)
    size = 0
    documents = _documents(count, chance)
    for number in range(-(-count // _MANIFESTS_PER_FILE)):
        part = list(islice(documents, _MANIFESTS_PER_FILE))
        path = folder / f"team-{number % 100}" / f"{number}.yaml"
        path.parent.mkdir(exist_ok=True)
        text = yaml.dump_all(part, Dumper=yaml.CSafeDumper, sort_keys=False)
        path.write_text(text, encoding="utf-8")
        size += len(text)
    return size


def _documents(count: int, chance: random.Random) -> Iterator[dict[str, object]]:
    policies = round(count * _POLICY_SHARE)
    for number in range(count):
        kind = "AuthorizationPolicy" if number < policies else chance.choice(_OTHERS)
        namespace, name = f"team-{number % 100}", f"app-{number}"
        yield {
            "apiVersion": _VERSIONS.get(kind, "v1"),
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": name, "team": namespace}},
            **_body(kind, name, namespace),
        }


def _body(kind: str, name: str, namespace: str) -> dict[str, object]:
    match kind:
        case "AuthorizationPolicy":
            source = {"serviceAccounts": [f"{namespace}/front"]}
            target = {"kind": "Pod", "selector": {"matchLabels": {"app": name}}}
            return {"spec": {"targetRefs": [target], "action": "ALLOW", "rules": [{"authorizationSource": source}]}}
        case "ConfigMap":
            return {"data": {f"setting-{n}": f"value {n} of {name}" for n in range(12)}}
        case "Deployment":
            container = {
                "name": "main",
                "image": "registry.example/main:1.2.3",
                "ports": [{"containerPort": 8080, "name": "http"}],
                "env": [{"name": f"VARIABLE_{n}", "value": f"value {n}"} for n in range(8)],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
            }
            pod = {"serviceAccountName": name, "containers": [container]}
            template = {"metadata": {"labels": {"app": name}}, "spec": pod}
            return {"spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}}
        case "Service":
            return {"spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": "http"}]}}
        case "RoleBinding":
            role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
            return {"roleRef": role, "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]}
        case "HorizontalPodAutoscaler":
            target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
            return {"spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 10}}
    return {}


def _eastgate(folder: Path, count: int) -> None:
    read = read_manifests([folder])
    assert not read.reporter.errors, read.reporter.errors[0]
    assert len(read.policies) + len(read.objects) + read.unused == count
    assert len(read.policies) == round(count * _POLICY_SHARE)


def _yaml(folder: Path, count: int) -> None:
    files = folder.rglob("*.yaml")
    assert sum(len(list(yaml.load_all(path.read_text("utf-8"), yaml.CSafeLoader))) for path in files) == count


_READERS: Mapping[str, Callable[[Path, int], None]] = {"eastgate": _eastgate, "CSafeLoader": _yaml}


if __name__ == "__main__":
    gc.disable()
    start = clock()
    _READERS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps({"seconds": clock() - start, "bytes": peak_bytes()}))
