"""ValidatingAdmissionPolicies: what a CustomResourceDefinition cannot say.

That is the draft's “VAP Validation” list, which depends on the mesh, metadata, which a schema cannot reach, and what
stands beside the spec, which a schema that has a status cannot refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from eastgate.reading.manifests.shapes import Choice, MapOf, Record
from eastgate.reports.crds.kinds import Definition, Version, served
from eastgate.reports.crds.openapi import Schema, rules_of
from eastgate.settings import MeshMode

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
    """Yield the rules that compare the spec with the metadata, of which a definition sees only the name."""
    for rule in rules_of(shape):
        for cel in rule.cel:
            yield re.sub(r"\bself\b", "object", cel.rule), cel.message


def _annotations(shape: Record[Any]) -> Iterator[tuple[str, str]]:
    """Yield a rule for each annotation that takes one of a few words."""
    metadata = shape.fields["metadata"].shape
    annotations = metadata.fields["annotations"].shape if isinstance(metadata, Record) else None
    shapes = annotations.known if isinstance(annotations, MapOf) else {}
    for name, of in sorted(shapes.items()):
        if isinstance(of, Choice):
            path = "object.metadata.annotations"
            rule = f"!has({path}) || !('{name}' in {path}) || {path}['{name}'] in {list(of.options)}"
            yield rule, f"the annotation {name} is {' or '.join(of.options)}"
