"""A valid policy with one change: Eastgate and an API server agree whether it is still valid."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import dialects
from eastgate.basics.diagnostics import Reporter
from eastgate.reading.manifests import read_text
from eastgate.settings import MeshMode, Settings
from tests.reports.crds.api_server import refusals
from tests.reports.crds.corpus import Sample, samples

Path = tuple[str | int, ...]

WORDS = (
    *("", "*", "a", "A", "a/b", "a/*", "*/a", "a/b/c", "a.b", "-a", "a b", "/a", "/a*", "/a/../b", "GET", "get"),
    *("Pod", "Service", "Gateway", "XBackend", "HTTPRoute", "core", "gateway.networking.k8s.io"),
    *("ALLOW", "DENY", "PASS", "Allow", "Deny", "NETWORK", "application", "Application", "Admin"),
    *("SPIFFE", "ServiceAccount", "InlineTools", "ExternalAuth", "HTTP", "GRPC", "In", "Exists"),
    *("spiffe://td/a", "spiffe://td", "spiffe://td/a/../b", "agentic.prototype.x-k8s.io", "x" * 64, "x" * 254),
)
FIELDS = (
    *("kind", "name", "group", "selector", "matchLabels", "matchExpressions", "matchExpression", "values", "operator"),
    *("rules", "tcpRules", "action", "enforcementLevel", "targetRefs", "subject", "namespaces", "identities"),
    *("serviceAccounts", "serviceAccount", "spiffe", "type", "ports", "paths", "applicationAttributes"),
    *("authorizationSource", "sources", "attributes", "tools", "externalAuth", "grpc", "http", "port", "hostname"),
)
VALUES = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from([0, 1, 80, 65536, -1, 1001, True, 1.5]),
    st.sampled_from([[], {}, [{}], [""], ["a/b"], [80], ["GET"], ["spiffe://td/a"], {"a": "b"}, {"matchLabels": {}}]),
).map(copy.deepcopy)


@cache
def good() -> list[dict[str, Any]]:
    """Return the valid policies, each once, without regard to their names."""
    found = {json.dumps([one.manifest["kind"], one.manifest["spec"]], sort_keys=True): one for one in fine()}
    return [found[key].manifest for key in sorted(found)]


def is_translated(sample: Sample) -> bool:
    """Return whether all parts are translated.

    AuthPolicy is translated in part only: see the excuses in `test_agreement`.
    """
    return not sample.manifest["apiVersion"].startswith("apim.kuadrant.io/")


def fine() -> Iterator[Any]:
    for one in samples():
        if not one.errors and is_translated(one) and not refusals(one.manifest, one.mode):
            yield one


def paths(value: object, path: Path = ()) -> Iterator[Path]:
    yield path
    if isinstance(value, dict):
        for key, one in value.items():
            yield from paths(one, (*path, key))
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from paths(one, (*path, place))


@st.composite
def changed(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a valid policy, with one or two places of its spec replaced, removed, added to or doubled."""
    manifest: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(good())))
    for _ in range(draw(st.integers(1, 2))):
        *before, last = draw(st.sampled_from([("spec", *path) for path in paths(manifest["spec"])]))
        around: Any = manifest
        for step in before:
            around = around[step]
        here = around[last]
        match draw(st.sampled_from(["replace", "remove", "add", "double"])):
            case "remove" if before:
                del around[last]
            case "add" if isinstance(here, dict):
                here[draw(st.sampled_from(FIELDS))] = draw(VALUES)
            case "add" if isinstance(here, list):
                here.append(draw(VALUES))
            case "double" if isinstance(here, list) and here:
                here.append(copy.deepcopy(here[0]))
            case _:
                around[last] = draw(VALUES)
    return manifest


def errors(manifest: dict[str, Any], mode: MeshMode) -> list[str]:
    """Return Eastgate's errors for it."""
    (document,) = read_text("changed.json", json.dumps(manifest), positioned=dialects.reads).documents
    reporter = Reporter()
    read = dialects.read_policy if dialects.is_policy(document) else dialects.read_object
    read(document, Settings(mesh_mode=mode), reporter)
    return [str(error) for error in reporter.errors]


def is_one_target_in_a_list(manifest: dict[str, Any]) -> bool:
    """Return whether it lists the targets of v1alpha1, which only a file may do (ruling 5)."""
    spec = manifest["spec"]
    is_old = manifest["apiVersion"].endswith("x-k8s.io/v1alpha1") and manifest["kind"] == "AuthorizationPolicy"
    return is_old and isinstance(spec, dict) and isinstance(spec.get("targetRefs"), list)


@settings(max_examples=400)
@given(changed(), st.sampled_from(MeshMode))
def test_a_changed_policy_is_refused_by_both_or_by_none(manifest: dict[str, Any], mode: MeshMode) -> None:
    if is_one_target_in_a_list(manifest):
        return
    said, refused = errors(manifest, mode), refusals(manifest, mode)
    assert bool(said) == bool(refused), (said, refused)
