"""CustomResourceDefinitions, as an API server takes them."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from eastgate.dialects.serving import Column, Status
from eastgate.manifests.shapes import Record
from eastgate.records import dataclass
from eastgate.reports.crds.kinds import Definition, Version, served
from eastgate.reports.crds.openapi import Place, Schema, structural
from eastgate.reports.crds.status import CONDITIONS, POLICY_STATUS

__all__ = ["Webhook", "definitions"]

POLICY_LABEL = "gateway.networking.k8s.io/policy"
_STATUS = {Status.ANCESTORS: POLICY_STATUS, Status.CONDITIONS: CONDITIONS}


@dataclass(frozen=True, slots=True)
class Webhook:
    """The Service that converts between versions, and the certificates (PEM) of the CA that it is known by."""

    namespace: str
    name: str
    ca: str | None = None


def definitions(webhook: Webhook | None = None) -> list[Schema]:
    """Every definition, in the order of their names."""
    return sorted((_definition(one, webhook) for one in served()), key=lambda one: str(one["metadata"]["name"]))


def _definition(one: Definition, webhook: Webhook | None) -> Schema:
    resource = one.resource
    labels = {"labels": {POLICY_LABEL: resource.attachment}} if resource.attachment else {}
    short = {"shortNames": [one.short]} if one.short else {}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{one.group}"} | labels,
        "spec": {
            "group": one.group,
            "scope": "Cluster" if one.cluster_scoped else "Namespaced",
            "names": {
                "kind": one.kind,
                "listKind": f"{one.kind}List",
                "plural": resource.plural,
                "singular": one.kind.lower(),
                **short,
                "categories": ["eastgate"],
            },
            "versions": [_version(one, version, webhook) for version in one.versions],
        }
        | (_conversion(webhook) if webhook and len(one.versions) > 1 else {}),
    }


def _version(of: Definition, version: Version, webhook: Webhook | None) -> Schema:
    """A superseded version without anything that converts it would be stored as it is, under the name of the other
    version, and mean something else there: so it is not served."""
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
    """The schema of a resource. Its metadata is the API server's own to check."""
    spec = shape.fields["spec"]
    return {
        "type": "object",
        "description": shape.about or f"{shape.what}.",
        "properties": {
            "apiVersion": {"type": "string", "description": "The group and the version."},
            "kind": {"type": "string", "description": "The kind."},
            "metadata": {"type": "object"},
            "spec": structural(spec.shape, spec.about or "What the author wants.", Place(of.resource.widening_nulls)),
            "status": _STATUS[of.resource.status],
        },
        "required": ["spec"],
    }


def _column(column: Column) -> Schema:
    wide = {"priority": column.priority} if column.priority else {}
    return {"name": column.name, "type": column.type, "jsonPath": column.path} | wide


def _conversion(webhook: Webhook) -> Schema:
    service = {"namespace": webhook.namespace, "name": webhook.name, "path": "/convert"}
    trusted = {"caBundle": b64encode(webhook.ca.encode()).decode()} if webhook.ca else {}
    return {
        "conversion": {
            "strategy": "Webhook",
            "webhook": {"clientConfig": {"service": service} | trusted, "conversionReviewVersions": ["v1"]},
        }
    }
