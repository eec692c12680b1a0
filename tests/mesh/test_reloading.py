"""What differs between what is in force and what is written now."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eastgate.api.reading import Manifests, read_manifests
from eastgate.mesh.events import Changes
from eastgate.mesh.reloading import difference
from tests.mesh.running import SHOP


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHOP, tmp_path / "shop"))


def after(manifests: Path, file: str, old: str, new: str) -> tuple[Manifests, Manifests]:
    before = read_manifests([manifests])
    path = manifests / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return before, read_manifests([manifests])


def test_nothing_differs_where_nothing_was_changed(manifests: Path) -> None:
    found = difference(read_manifests([manifests]), read_manifests([manifests]))
    assert found is not None
    assert (found.put, found.removed, found.changes) == ((), (), Changes())


def test_only_the_policy_that_was_changed_is_put(manifests: Path) -> None:
    found = difference(*after(manifests, "policies.yaml", "ports: [8080]", "ports: [8081]"))
    assert found is not None
    assert [str(policy.ref) for policy in found.put] == ["AuthorizationPolicy/shop/cart-from-web"]
    assert found.changes.every == ("AuthorizationPolicy/shop/cart-from-web",)


def test_policies_on_other_lines_are_put_but_not_called_changed(manifests: Path) -> None:
    found = difference(*after(manifests, "policies.yaml", "      ports: [8080]\n", "      ports:\n      - 8080\n"))
    assert found is not None
    assert len(found.put) == 4  # all of the file
    assert found.changes.every == ("AuthorizationPolicy/shop/cart-from-web",)


def test_a_renamed_policy_is_one_removed_and_one_put(manifests: Path) -> None:
    found = difference(*after(manifests, "policies.yaml", "name: no-sandbox", "name: no-tests"))
    assert found is not None
    assert [str(ref) for ref in found.removed] == ["AuthorizationPolicy/shop/no-sandbox"]
    added, removed = "AuthorizationPolicy/shop/no-tests", "AuthorizationPolicy/shop/no-sandbox"
    assert found.changes == Changes(added=(added,), removed=(removed,))


def test_another_world_is_more_than_policies(manifests: Path) -> None:
    assert difference(*after(manifests, "world.yaml", "tier: front", "tier: back")) is None


def test_comments_and_order_of_keys_in_the_world_are_nothing(manifests: Path) -> None:
    found = difference(
        *after(manifests, "world.yaml", "labels: {team: shop, env: test}", "labels: {env: test, team: shop}")
    )
    assert found is not None
    assert not found.put
