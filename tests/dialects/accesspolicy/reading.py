"""AccessPolicies and Backends for tests, read from text exactly as files are."""

from __future__ import annotations

from textwrap import indent

from eastgate import dialects
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.cluster import Backend
from eastgate.dialects.accesspolicy import Policy
from eastgate.settings import Settings
from tests.dialects.reading import document

PROTOTYPE = "agentic.prototype.x-k8s.io"
NETWORKING = "agentic.networking.x-k8s.io"
FORMS = {
    "v0alpha0": f"{PROTOTYPE}/v0alpha0",
    "v0alpha0-cel": f"{NETWORKING}/v0alpha0",
    "v1alpha1": f"{NETWORKING}/v1alpha1",
}
DEFAULT = Settings()

GATEWAY = "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]\n"
BACKEND = f"targetRefs: [{{group: {PROTOTYPE}, kind: XBackend, name: pay}}]\n"
AUTHORIZER = "{protocol: GRPC, grpc: {}, backendRef: {name: fraud, port: 9000}}"
CHECKOUT = "{type: ServiceAccount, serviceAccount: {name: checkout}}"
CHECKOUT_ID = "spiffe://cluster.local/ns/prod/sa/checkout"


def manifest(form: str, spec: str, metadata: str = "{name: p, namespace: prod}", kind: str = "XAccessPolicy") -> str:
    """Return a policy of one of the forms. The spec begins in line 5."""
    return f"apiVersion: {FORMS[form]}\nkind: {kind}\nmetadata: {metadata}\nspec:\n{indent(spec.strip(), '  ')}\n"


def judge(text: str, settings: Settings = DEFAULT) -> tuple[Policy | None, list[Diagnostic]]:
    """Return the policy in a text, or None, and all diagnostics about it."""
    reporter = Reporter()
    read = dialects.read_policy(document(text), settings, reporter)
    assert read is None or isinstance(read, Policy)
    return read, reporter.diagnostics


def policy(text: str, settings: Settings = DEFAULT) -> Policy:
    """Return the policy in a text without errors."""
    read, found = judge(text, settings)
    assert found == []
    assert read is not None
    return read


def refusals(text: str, settings: Settings = DEFAULT) -> list[str]:
    """Return the codes of the errors in a text that is no policy."""
    read, found = judge(text, settings)
    assert read is None
    return [diagnostic.code.id for diagnostic in found]


def backend_manifest(mcp: str, form: str = "v0alpha0", kind: str = "XBackend", where: str = ", namespace: prod") -> str:
    return f"apiVersion: {FORMS[form]}\nkind: {kind}\nmetadata: {{name: pay{where}}}\nspec:\n  mcp: {mcp}\n"


def judge_backend(text: str) -> tuple[Backend | None, list[Diagnostic]]:
    """Return the Backend in a text, or None, and all diagnostics about it."""
    reporter = Reporter()
    return dialects.read_object(document(text), DEFAULT, reporter), reporter.diagnostics
