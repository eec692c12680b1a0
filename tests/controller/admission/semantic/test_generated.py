"""On generated worlds: a judgement without warnings agrees with a complete comparison."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Authority, Settings
from eastgate.authority.reading import ManifestError, read_plain
from eastgate.cluster.unread import Handling
from eastgate.controller.admission.semantic import Judge, ObjectChange
from eastgate.reports.diff.run import diff
from eastgate.settings import DataPlane
from tests.worlds import access_generate, generate, kuadrant_generate, linkerd_generate, network_generate
from tests.worlds.linkerd_oracle import ALL_POLICIES
from tests.worlds.test_generated_clusters import situations

Manifest = dict[str, Any]

_UNJUDGED = ("Pod", "Secret")


def _authority(manifests: list[Manifest], chosen: Settings) -> Authority:
    return Authority(read_plain(manifests, chosen), strict=False, unread=Handling.BY_KIND)


def _name(manifest: Manifest) -> tuple[str, str, str | None, str]:
    metadata = manifest["metadata"]
    return manifest["apiVersion"].partition("/")[0], manifest["kind"], metadata.get("namespace"), metadata["name"]


def _check(data: st.DataObject, manifests: list[Manifest], others: list[Manifest], chosen: Settings) -> None:
    """Judge changes of the same world one after the other, and compare each judgement with a complete comparison."""
    try:
        given = _authority(manifests, chosen)
    except ManifestError:
        return
    judge = Judge(given, budget=None)
    changes = [(each, True) for each in manifests if each["kind"] not in _UNJUDGED]
    changes += [(each, False) for each in others if each["kind"] not in _UNJUDGED]
    if not changes:
        return
    for changed, removed in data.draw(st.lists(st.sampled_from(changes), min_size=1, max_size=3)):
        left = [each for each in manifests if _name(each) != _name(changed)]
        try:
            new = _authority(left if removed else [*left, changed], chosen)
        except ManifestError:
            continue
        judgement = judge.judge(ObjectChange.of(changed, removed=removed))
        warned = any(" can now reach " in each or each.startswith("not proven: ") for each in judgement.warnings)
        report = diff(given, new, unread=False)
        assert warned or not report.wider, (changed, removed, report.changes)
        # An ingress policy distinguishes callers of other layers, for which a complete comparison has a doubt
        if changed["kind"] != "NetworkPolicy":
            assert warned or not report.unproven or given.rejected or new.rejected, report.unproven
        closed = any(" can no longer reach " in each for each in judgement.warnings)
        assert closed or not judgement.determined or not report.narrower, (changed, removed, report.changes)
    judge.close()


@settings(max_examples=60, deadline=None)
@given(st.data(), situations())
def test_of_policies_on_workloads(data: st.DataObject, situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    others = data.draw(generate.clusters(ambient=str(chosen.mesh_mode) == "ambient"))
    _check(data, manifests, others, chosen)


@settings(max_examples=40, deadline=None)
@given(
    st.data(),
    linkerd_generate.pods,
    linkerd_generate.namespace,
    linkerd_generate.resources,
    linkerd_generate.resources,
    st.sampled_from(ALL_POLICIES),
)
def test_of_linkerds_resources(
    data: st.DataObject,
    pods: list[Manifest],
    namespace: Manifest,
    resources: list[Manifest],
    others: list[Manifest],
    default: str,
) -> None:
    chosen = Settings.from_mapping({"linkerdDefaultPolicy": default, "dataPlane": DataPlane.NATIVE})
    _check(data, [namespace, *pods, *resources], others, chosen)


@settings(max_examples=30, deadline=None)
@given(st.data(), access_generate.policies, access_generate.policies)
def test_of_access_policies(data: st.DataObject, policies: list[Manifest], others: list[Manifest]) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td"})
    _check(data, [*access_generate.FIXED, *policies], others, chosen)


@settings(max_examples=30, deadline=None)
@given(st.data(), kuadrant_generate.clusters(), kuadrant_generate.clusters())
def test_of_auth_policies(data: st.DataObject, manifests: list[Manifest], others: list[Manifest]) -> None:
    _check(data, manifests, others, Settings())


@pytest.mark.slow
@pytest.mark.untraced
@settings(max_examples=4, deadline=None)
@given(st.data(), network_generate.situations(), network_generate.situations())
def test_of_network_policies(
    data: st.DataObject,
    situation: tuple[list[Manifest], list[Any]],
    others: tuple[list[Manifest], list[Any]],
) -> None:
    _check(data, situation[0], [each for each in others[0] if each["kind"].endswith("Policy")], Settings())
