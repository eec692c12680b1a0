"""Converts AuthConfigs to v1beta3 by renaming fields, and AuthPolicies of v1beta3 to v1 by changing the version."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.convert.authconfigs import API_VERSION, from_v1beta1
from eastgate.convert.model import Item, Job, Manifest, metadata_of
from eastgate.convert.policy_writing import POLICY_API_VERSION
from eastgate.dialects.kuadrant.nulls import without_nulls
from eastgate.reading.manifests import Document

_AGES = ("creationTimestamp", "deletionTimestamp")


def to_v1beta3(items: Sequence[Item], job: Job) -> None:
    """Convert AuthConfigs of earlier versions."""
    for item in items:
        job.write(item.document, _manifest(item, API_VERSION, config_of(item)))


def to_v1(items: Sequence[Item], job: Job) -> None:
    """Convert AuthPolicies of v1beta3, which has the shape of v1."""
    for item in items:
        job.write(item.document, _manifest(item, POLICY_API_VERSION, spec_of(item)))


def config_of(item: Item) -> Manifest:
    """Return the spec of an AuthConfig of any version with the field names of v1beta3."""
    spec = spec_of(item)
    renamed = from_v1beta1(spec) if item.document.version == "v1beta1" else spec
    return {name: value for name, value in renamed.items() if value not in ({}, [])}


def spec_of(item: Item) -> Manifest:
    """Return the spec of a policy as plain data, without nulls."""
    assert item.document.node is not None  # noqa: S101 - policies are read with positions
    spec = without_nulls(item.document.node["spec"]).plain()
    assert isinstance(spec, dict)  # noqa: S101 - it was read
    return spec


def _ages(document: Document) -> Manifest:
    """Return the times of creation and deletion.

    The result is the same object, and its age decides between rival policies.
    """
    metadata = document.node.get("metadata") if document.node is not None else None
    plain = metadata.plain() if metadata is not None else {}
    return {name: plain[name] for name in _AGES if name in plain} if isinstance(plain, dict) else {}


def _manifest(item: Item, api_version: str, spec: Manifest) -> Manifest:
    document = item.document
    metadata = {**metadata_of(document, document.name), **_ages(document)}
    return {"apiVersion": api_version, "kind": document.kind, "metadata": metadata, "spec": spec}
