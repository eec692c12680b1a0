"""Linkerd's resources for tests, read from text exactly as files are."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent, indent
from typing import TypeVar

from eastgate import dialects
from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.reading import sort_documents
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.dialects.linkerd.model import GROUP, LinkerdResource
from eastgate.ir import Known, Outcome, Request
from eastgate.ir.attributes import ADDRESS, HOST, MESH_NAME, METHOD, PATH, PORT, SENT_PATH, Attribute
from eastgate.reading.manifests import read_text
from eastgate.settings import Settings
from tests.dialects.reading import document

R = TypeVar("R", bound=LinkerdResource)

DEFAULT = Settings()
VERSIONS = {
    "Server": ("v1alpha1", "v1beta1", "v1beta2", "v1beta3"),
    "ServerAuthorization": ("v1alpha1", "v1beta1"),
    "AuthorizationPolicy": ("v1alpha1",),
    "MeshTLSAuthentication": ("v1alpha1",),
    "NetworkAuthentication": ("v1alpha1",),
    "HTTPRoute": ("v1alpha1", "v1beta1", "v1beta2", "v1beta3"),
}
META = "{name: p, namespace: shop}"
SERVER = "targetRef: {group: policy.linkerd.io, kind: Server, name: web}\n"


def mesh_name(account: str, namespace: str = "shop") -> str:
    """Return Linkerd's name of a service account."""
    return f"{account}.{namespace}.serviceaccount.identity.linkerd.cluster.local"


WEB = mesh_name("web")
CALL: Mapping[Attribute, Known] = {
    MESH_NAME: WEB,
    ADDRESS: "10.1.2.3",
    PORT: 80,
    METHOD: "GET",
    PATH: "/",
    HOST: "web.example.com",
}


def call(change: Mapping[Attribute, Known] | None = None) -> Request:
    """Return a request of `web` with some attributes changed. Its path is in the canonical form."""
    values = {**CALL, **(change or {})}
    return Request({SENT_PATH: values[PATH], **values})


def manifest(kind: str, spec: str, metadata: str = META, version: str | None = None) -> str:
    """Return a resource in its latest version. The spec begins in line 5."""
    written = indent(dedent(spec).strip(), "  ")
    return (
        f"apiVersion: {GROUP}/{version or VERSIONS[kind][-1]}\nkind: {kind}\nmetadata: {metadata}\nspec:\n{written}\n"
    )


def judge(text: str, settings: Settings = DEFAULT) -> tuple[LinkerdResource | None, list[Diagnostic]]:
    """Return the resource in a text, or None, and all diagnostics about it."""
    reporter = Reporter()
    read = dialects.read_policy(document(text), settings, reporter)
    assert read is None or isinstance(read, LinkerdResource)
    return read, reporter.diagnostics


def resource(
    model: type[R], spec: str, metadata: str = META, version: str | None = None, settings: Settings = DEFAULT
) -> R:
    """Return the resource of a model's kind with this spec. It may have warnings of Linkerd, but no errors."""
    kind = "HTTPRoute" if model.__name__ == "HttpRoute" else model.__name__
    read, found = judge(manifest(kind, spec, metadata, version), settings)
    assert [one.code.id for one in found if one.is_error] == []
    assert isinstance(read, model)
    return read


def authority(text: str, settings: Settings = DEFAULT) -> Authority:
    """Return the authority over the manifests in a text."""
    reading = read_text("cluster.yaml", text, positioned=dialects.reads)
    return Authority(sort_documents(reading.documents, settings, reading.reporter), settings)


def outcome(of: Authority, point: str, change: Mapping[Attribute, Known] | None = None) -> Outcome:
    """Return the outcome of a call at a workload."""
    program = programs_of(of).program(point)
    return program.outcome(programs_of(of).decide(point, call(change)))
