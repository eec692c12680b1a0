"""CustomResourceDefinitions, as an API server takes them."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from eastgate.basics.records import dataclass
from eastgate.dialects.serving import Column, Status
from eastgate.reading.manifests.shapes import Record
from eastgate.reports.crds.kinds import Definition, Version, served
from eastgate.reports.crds.openapi import KEEP_UNKNOWN, Schema, SchemaContext, structural
from eastgate.reports.crds.status import CONDITIONS, POLICY_STATUS

POLICY_LABEL = "gateway.networking.k8s.io/policy"
_STATUS = {Status.ANCESTORS: POLICY_STATUS, Status.CONDITIONS: CONDITIONS}


@dataclass(frozen=True, slots=True)
class Webhook:
    """The Service that the API server asks, and the certificates (PEM) of the CA that it is known by.

    With a `url`, the server asks there and no Service.
    """

    namespace: str
    name: str
    ca: str | None = None
    url: str | None = None

    def client_config(self, path: str) -> Schema:
        """Return how the API server asks at a path."""
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
    """Return one version. A superseded one is served only with a webhook that converts it.

    Otherwise it would be stored as it is, under the name of the other version, and mean something else there.
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

    The API server checks its metadata itself. What stands beside the spec is kept, for admission policies to refuse.
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
                spec.shape, spec.about or "What the author wants.", SchemaContext(of.resource.widening_nulls)
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
