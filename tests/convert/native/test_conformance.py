"""Native policies for all policies of GEP-3779 in the conformance suite and the examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from eastgate import Settings
from eastgate.basics.diagnostics import Severity
from eastgate.convert import Options
from eastgate.convert.native import NativeMesh, NativeState, Unwritable, wanted
from eastgate.reach.differences import compare
from tests.convert.conversions import ALL_ASSUMED
from tests.convert.native.clusters import Manifest, is_source, read
from tests.worlds.test_generated_clusters import authority_of

ROOT = Path(__file__).parents[3]


def _documents(path: Path) -> Iterator[Any]:
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        if isinstance(document, dict):
            yield document


def _tables() -> Iterator[tuple[str, list[Manifest], dict[str, str]]]:
    for path in sorted((ROOT / "conformance").glob("*AuthorizationPolicy*/*.yaml")):
        for number, document in enumerate(_documents(path)):
            spec = document.get("spec", {})
            if document.get("kind") == "DecisionTest" and any(map(is_source, spec.get("objects", ()))):
                yield f"{path.parent.name}/{path.stem}-{number}", spec["objects"], spec.get("settings", {})
    for folder in sorted((ROOT / "examples").iterdir()):
        manifests = [m for path in sorted(folder.rglob("manifests/**/*.yaml")) for m in _documents(path)]
        if any(map(is_source, manifests)):
            yield f"examples/{folder.name}", manifests, {}


TABLES = list(_tables())


@pytest.mark.parametrize("mesh", list(NativeMesh))
@pytest.mark.parametrize(("manifests", "settings"), [t[1:] for t in TABLES], ids=[t[0] for t in TABLES])
def test_the_mesh_answers_as_the_policies_say_or_denies(
    manifests: list[Manifest], settings: dict[str, str], mesh: NativeMesh
) -> None:
    chosen = Settings.from_mapping({**settings, "linkerdDefaultPolicy": "deny"})
    for options in (Options(), ALL_ASSUMED):
        plan = wanted(read(manifests, chosen), mesh, options, Unwritable.CLOSE)
        assert not plan.is_wider, plan.outcomes
        for outcome in plan.outcomes:
            assert outcome.losses or outcome.state is NativeState.WRITTEN
            # Assumptions exclude paths with another spelling in the mesh, and the like. Nothing else is lost in
            # writing.
            assert not outcome.differences or outcome.state is not NativeState.WRITTEN or _is_shared(plan.outcomes)


def _is_shared(outcomes: Any) -> bool:
    """Return whether some policy is not written, so that others on the same pods may differ too."""
    return any(outcome.state is not NativeState.WRITTEN for outcome in outcomes)


def test_most_policies_are_written() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for _, manifests, settings in TABLES:
        chosen = Settings.from_mapping({**settings, "linkerdDefaultPolicy": "deny", "linkerdProbeNetworks": ""})
        for mesh in NativeMesh:
            plan = wanted(read(manifests, chosen), mesh, ALL_ASSUMED, Unwritable.CLOSE)
            valid = [o for o in plan.outcomes if all(loss.code.severity is not Severity.ERROR for loss in o.losses)]
            counts.update((str(mesh), str(outcome.state)) for outcome in valid)
    print(sorted(counts.items()))
    assert counts[("istio", "Written")] > counts[("istio", "Closed")] + counts[("istio", "NotWritten")]
    assert counts[("linkerd", "Written")]


def test_a_comparison_that_finds_nothing_would_find_something() -> None:
    """Without the native policies the mesh is wider in many tables, so the proof above is not vacuous."""
    wider = 0
    for _, manifests, settings in TABLES:
        chosen = Settings.from_mapping(settings)
        if read(manifests, chosen).reporter.errors:
            continue
        things = [manifest for manifest in manifests if not is_source(manifest)]
        comparison = compare(authority_of(manifests, chosen), authority_of(things, chosen))
        wider += any(difference.new.allowed for difference in comparison.differences)
    assert wider > len(TABLES) / 2
