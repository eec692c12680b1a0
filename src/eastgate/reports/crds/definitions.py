"""CustomResourceDefinitions for an API server."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any

from eastgate.basics.records import dataclass
from eastgate.dialects import registered
from eastgate.dialects.base import Kind
from eastgate.dialects.serving import AGE, Column, Served, ServedResource, Status
from eastgate.reading.manifests.shapes import Choice, MapOf, Record
from eastgate.reports.crds.openapi import (
    CONDITIONS,
    KEEP_UNKNOWN,
    POLICY_STATUS,
    Schema,
    SchemaContext,
    rules_of,
    structural,
)
from eastgate.reports.invariants.shapes import CLUSTER_KIND
from eastgate.reports.invariants.shapes import SERVED as STATED
from eastgate.settings import MeshMode

# Every kind that Eastgate reads, with its shapes, and the definitions of the kinds that only Eastgate defines.


_HOLDS = Column("Holds", '.status.conditions[?(@.type=="Holds")].status')
_REASON = Column("Reason", '.status.conditions[?(@.type=="Holds")].reason')


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a kind. A `superseded` version is served only if a webhook converts it."""

    name: str
    shape: Record[Any]
    columns: tuple[Column, ...]
    superseded: str | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """One CustomResourceDefinition. The API server stores the first version."""

    group: str
    kind: str
    short: str | None
    cluster_scoped: bool
    resource: ServedResource
    versions: tuple[Version, ...]


@dataclass(frozen=True, slots=True)
class Readable:
    """A kind in one version of a file. A document matches one of the shapes."""

    group: str
    version: str
    kind: str
    shapes: tuple[Record[Any], ...]


def served() -> list[Definition]:
    """Return a definition of each kind that only Eastgate defines, with its versions in the order of its dialect.

    Invariants come last.
    """
    versions: dict[tuple[str, str], list[tuple[Kind[Any], Served]]] = {}
    for kind in registered().kinds:
        if kind.served is not None:
            versions.setdefault((kind.group, kind.kind), []).append((kind, kind.served))
    return [*(_kind_definition(of_kind) for of_kind in versions.values()), *_invariants()]


def _invariants() -> Iterator[Definition]:
    """Yield the definitions of invariants, which are not policies."""
    for kind, shape in STATED.items():
        version = Version("v1alpha1", shape, (_HOLDS, _REASON, AGE))
        yield Definition(
            "eastgate.dev",
            kind,
            "cinv" if kind == CLUSTER_KIND else "inv",
            kind == CLUSTER_KIND,
            ServedResource(f"{kind.lower()}s", Status.CONDITIONS),
            (version,),
        )


def _kind_definition(versions: Sequence[tuple[Kind[Any], Served]]) -> Definition:
    kind, stored = versions[0]
    return Definition(
        kind.group,
        kind.kind,
        kind.short,
        kind.cluster_scoped,
        stored.resource,
        tuple(
            Version(kind.version, served.shape or kind.shapes()[0], served.columns, served.superseded)
            for kind, served in versions
        ),
    )


def readable() -> Iterator[Readable]:
    """Yield every kind that Eastgate reads itself."""
    for kind in registered().kinds:
        yield Readable(kind.group, kind.version, kind.kind, kind.shapes())


# ValidatingAdmissionPolicies: rules that a CustomResourceDefinition cannot express. These are the draft's “VAP
# Validation” list, which depends on the mesh; metadata, which a schema cannot reach; and fields beside the spec, which
# a schema with a status cannot refuse.


_API = "admissionregistration.k8s.io/v1"
_BESIDE_SPEC = (
    "dyn(object).all(field, field in ['apiVersion', 'kind', 'metadata', 'spec', 'status'])",
    "a field beside spec belongs in it: indent it",
)


def admission_policies(mode: MeshMode) -> list[Schema]:
    """Return a policy and its binding for each version of each kind, sorted by name."""
    made = [
        pair
        for definition in served()
        for version in definition.versions
        for pair in _policy(definition, version, mode)
    ]
    return sorted(made, key=lambda resource: (str(resource["metadata"]["name"]), str(resource["kind"])))


def _policy(of: Definition, version: Version, mode: MeshMode) -> Iterator[Schema]:
    validations = [
        {"expression": rule, "message": message, "reason": "Invalid"}
        for rule, message in (
            _BESIDE_SPEC,
            *_of_the_mesh(version.shape, mode),
            *_of_the_whole(version.shape),
            *_annotations(version.shape),
        )
    ]
    plural = of.resource.plural
    metadata = {"name": f"{plural}.{version.name}.{of.group}", "labels": {"eastgate.dev/mesh-mode": str(mode)}}
    rule = {
        "apiGroups": [of.group],
        "apiVersions": [version.name],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural],
    }
    yield {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"matchPolicy": "Exact", "resourceRules": [rule]},
            "validations": validations,
        },
    }
    yield {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": metadata["name"], "validationActions": ["Deny"]},
    }


def _of_the_mesh(shape: Record[Any], mode: MeshMode) -> Iterator[tuple[str, str]]:
    for rule in rules_of(shape.fields["spec"].shape):
        for cel in rule.cel:
            if mode in cel.mesh:
                yield re.sub(r"\bself\b", "object.spec", cel.rule), cel.message


def _of_the_whole(shape: Record[Any]) -> Iterator[tuple[str, str]]:
    """Yield the rules that compare the spec with the metadata. A definition sees only the name of the metadata."""
    for rule in rules_of(shape):
        for cel in rule.cel:
            yield re.sub(r"\bself\b", "object", cel.rule), cel.message


def _annotations(shape: Record[Any]) -> Iterator[tuple[str, str]]:
    """Yield a rule for each annotation that has a fixed set of values."""
    metadata = shape.fields["metadata"].shape
    annotations = metadata.fields["annotations"].shape if isinstance(metadata, Record) else None
    shapes = annotations.known if isinstance(annotations, MapOf) else {}
    for name, of in sorted(shapes.items()):
        if isinstance(of, Choice):
            path = "object.metadata.annotations"
            rule = f"!has({path}) || !('{name}' in {path}) || {path}['{name}'] in {list(of.options)}"
            yield rule, f"the annotation {name} is {' or '.join(of.options)}"


POLICY_LABEL = "gateway.networking.k8s.io/policy"
_STATUS = {Status.ANCESTORS: POLICY_STATUS, Status.CONDITIONS: CONDITIONS}


@dataclass(frozen=True, slots=True)
class Webhook:
    """The Service that the API server calls, and the CA (PEM) that signed its certificate.

    With a `url`, the server calls the URL instead of a Service.
    """

    namespace: str
    name: str
    ca: str | None = None
    url: str | None = None

    def client_config(self, path: str) -> Schema:
        """Return the client configuration of the API server for a path."""
        service = {"namespace": self.namespace, "name": self.name, "path": path}
        asked: Schema = {"service": service} if self.url is None else {"url": f"{self.url}{path}"}
        return asked | ({"caBundle": b64encode(self.ca.encode()).decode()} if self.ca else {})


def definitions(webhook: Webhook | None = None) -> list[Schema]:
    """Return every definition, sorted by name."""
    return sorted(
        (_definition(definition, webhook) for definition in served()),
        key=lambda definition: str(definition["metadata"]["name"]),
    )


def _definition(definition: Definition, webhook: Webhook | None) -> Schema:
    resource = definition.resource
    labels = {"labels": {POLICY_LABEL: resource.attachment}} if resource.attachment else {}
    short = {"shortNames": [definition.short]} if definition.short else {}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{definition.group}"} | labels,
        "spec": {
            "group": definition.group,
            "scope": "Cluster" if definition.cluster_scoped else "Namespaced",
            "names": {
                "kind": definition.kind,
                "listKind": f"{definition.kind}List",
                "plural": resource.plural,
                "singular": definition.kind.lower(),
                **short,
                "categories": ["eastgate"],
            },
            "versions": [_version(definition, version, webhook) for version in definition.versions],
        }
        | (_conversion(webhook) if webhook and len(definition.versions) > 1 else {}),
    }


def _version(of: Definition, version: Version, webhook: Webhook | None) -> Schema:
    """Return one version. A superseded version is served only with a webhook that converts it.

    Without a webhook, the API server would store it unchanged under the name of the other version, with another
    meaning.
    """
    warning = f"{of.group}/{version.name} {of.kind} is superseded; {version.superseded}"
    deprecated = {"deprecated": True, "deprecationWarning": warning} if version.superseded else {}
    return {
        "name": version.name,
        "served": version.superseded is None or webhook is not None,
        "storage": version is of.versions[0],
        **deprecated,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in version.columns],
        "schema": {"openAPIV3Schema": whole_schema(version.shape, of)},
    }


def whole_schema(shape: Record[Any], of: Definition) -> Schema:
    """Return the schema of a resource.

    The API server checks the metadata itself. Fields beside the spec are kept, so that admission policies can refuse
    them.
    """
    spec = shape.fields["spec"]
    return {
        "type": "object",
        "description": shape.about or f"{shape.what}.",
        "properties": {
            "apiVersion": {"type": "string", "description": "The group and the version."},
            "kind": {"type": "string", "description": "The kind."},
            "metadata": {"type": "object"},
            "spec": structural(
                spec.shape, spec.about or "The desired state.", SchemaContext(of.resource.widening_nulls)
            ),
            "status": _STATUS[of.resource.status],
        },
        "required": ["spec"],
        KEEP_UNKNOWN: True,
    }


def _column(column: Column) -> Schema:
    wide = {"priority": column.priority} if column.priority else {}
    return {"name": column.name, "type": column.type, "jsonPath": column.path} | wide


def _conversion(webhook: Webhook) -> Schema:
    return {
        "conversion": {
            "strategy": "Webhook",
            "webhook": {"clientConfig": webhook.client_config("/convert"), "conversionReviewVersions": ["v1"]},
        }
    }
