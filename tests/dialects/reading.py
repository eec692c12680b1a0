"""Policies for tests, read from text like files."""

from __future__ import annotations

from textwrap import indent

from eastgate import dialects
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.dialects.gep3779 import Policy
from eastgate.reading.manifests import Document, read_text
from eastgate.settings import MeshMode, Settings

GROUP = "gateway.networking.x-k8s.io"
FORMS = {
    "v1alpha2": (f"{GROUP}/v1alpha2", "AuthorizationPolicy"),
    "v1alpha1": (f"{GROUP}/v1alpha1", "AuthorizationPolicy"),
    "x": (f"{GROUP}/v1alpha1", "XAuthorizationPolicy"),
    "cluster": ("eastgate.dev/v1alpha1", "ClusterAuthorizationPolicy"),
}
SIDECAR = Settings()
AMBIENT = Settings(mesh_mode=MeshMode.AMBIENT)


def manifest(form: str, spec: str, metadata: str = "{name: p, namespace: shop}") -> str:
    """Return the text of a policy. The spec begins in line 5."""
    api_version, kind = FORMS[form]
    if form == "cluster":
        metadata = metadata.replace(", namespace: shop", "")
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {metadata}\nspec:\n{indent(spec.strip(), '  ')}\n"


def document(text: str) -> Document:
    """Return the only document of a text."""
    reading = read_text("policy.yaml", text, positioned=dialects.reads)
    assert reading.reporter.diagnostics == []
    (one,) = reading.documents
    return one


def judge(text: str, settings: Settings = SIDECAR) -> tuple[Policy | None, list[Diagnostic]]:
    """Return the policy in a text, if there is one, and all diagnostics."""
    reporter = Reporter()
    read = dialects.read_policy(document(text), settings, reporter)
    assert read is None or isinstance(read, Policy)
    return read, reporter.diagnostics


def policy(text: str, settings: Settings = SIDECAR) -> Policy:
    """Return the policy in a text without errors."""
    read, found = judge(text, settings)
    assert found == []
    assert read is not None
    return read


def rejected(text: str, settings: Settings = SIDECAR) -> list[str]:
    """Return the codes of the errors in a text without a policy."""
    read, found = judge(text, settings)
    assert read is None
    return [diagnostic.code.id for diagnostic in found]
