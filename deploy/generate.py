"""Write the generated files of the chart, and the plain manifests that the chart renders. A test checks both.

`python deploy/generate.py` needs `helm` on the PATH, or its path in $HELM.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from eastgate.controller.admission.configuration import webhook_configurations
from eastgate.controller.certificates.ca_secret import SYSTEM_NAMESPACE
from eastgate.controller.options import SERVICE
from eastgate.controller.permissions import (
    FINALIZER_RULES,
    UserRole,
    base_rules,
    gateway_class_rules,
    gateway_rules,
    native_rules,
    own_rules,
    secret_rules,
    shared_status_rules,
    user_rules,
    webhook_rules,
)
from eastgate.convert.native import NativeMesh
from eastgate.reports.crds import Webhook, admission_policies, definitions
from eastgate.settings import MeshMode

DEPLOY = Path(__file__).parent
CHART = DEPLOY / "chart" / "eastgate"
GENERATED = CHART / "generated"
MANIFESTS = DEPLOY / "manifests"
DASHBOARD = DEPLOY / "grafana" / "eastgate.json"

_WEBHOOK = Webhook(SYSTEM_NAMESPACE, SERVICE)
_KEEP = {"helm.sh/resource-policy": "keep"}
_LABELS = {"app.kubernetes.io/name": "eastgate", "app.kubernetes.io/part-of": "eastgate"}
_NOTE = "# Rendered from deploy/chart by deploy/generate.py.\n"
_ONE_LINE = 10_000
_NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {
        "name": SYSTEM_NAMESPACE,
        "labels": {**_LABELS, "pod-security.kubernetes.io/enforce": "restricted"},
    },
}


def chart_files() -> dict[str, str]:
    """Return the generated files of the chart, by their path in the chart."""
    rules = {
        "base": base_rules(),
        "webhooks": webhook_rules(),
        "gateways": gateway_rules(),
        "gateway-class": gateway_class_rules(),
        "linkerd-status": shared_status_rules(),
        "owner-references": FINALIZER_RULES,
        "secrets": secret_rules(),
        "own": own_rules(),
        **{f"native-{mesh.value}": native_rules(mesh) for mesh in NativeMesh},
        **{f"users-{role.value}": user_rules(role) for role in UserRole},
    }
    converted, alone = (_by_name(definitions(webhook)) for webhook in (_WEBHOOK, None))
    files = {f"rules/{name}.yaml": _text(each) for name, each in rules.items()}
    files |= {f"crds/{name}.yaml": _documents([each]) for name, each in converted.items()}
    files |= {f"unconverted/{name}.yaml": _documents([alone[name]]) for name in alone if alone[name] != converted[name]}
    files |= {f"admission/{mode.value}.yaml": _documents(admission_policies(mode)) for mode in MeshMode}
    files["webhooks.yaml"] = _documents([_labelled(each) for each in webhook_configurations(_WEBHOOK)])
    if DASHBOARD.exists():
        files["dashboard.json"] = DASHBOARD.read_text(encoding="utf-8")
    return files


def manifest_files(helm: str | Path) -> dict[str, str]:
    """Return the plain manifests, as the chart renders them with its default values."""
    crds = _render(helm, "--show-only", "templates/crds.yaml")
    install = _render(helm, "--set", "crds.install=false")
    gateway_class = _render(helm, "--set", "gateways.createClass=true", "--show-only", "templates/gatewayclass.yaml")
    return {
        "crds.yaml": _NOTE + crds,
        "install.yaml": _NOTE + _documents([_NAMESPACE]) + install,
        "gatewayclass.yaml": _NOTE + gateway_class,
    }


def _render(helm: str | Path, *arguments: str) -> str:
    command = [helm, "template", "eastgate", CHART, "--namespace", SYSTEM_NAMESPACE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)  # noqa: S603
    return done.stdout


def _by_name(manifests: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: _kept(each) for each in manifests}


def _kept(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition that Helm does not delete, since all policies would be deleted with it."""
    metadata = definition["metadata"]
    return {**definition, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **_KEEP}}}


def _labelled(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "labels": _LABELS}}


class _WithoutAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - files are joined, and aliases would clash
        return True


def _text(content: object) -> str:
    return yaml.dump(content, Dumper=_WithoutAliases, sort_keys=False, width=_ONE_LINE, allow_unicode=True)


def _documents(manifests: Sequence[object]) -> str:
    return "".join(f"---\n{_text(each)}" for each in manifests)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    _write(GENERATED, chart_files())
    _write(MANIFESTS, manifest_files(os.environ.get("HELM", "helm")))
