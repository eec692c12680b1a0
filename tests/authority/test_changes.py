"""No input of an authority changes without its answers: the world notifies the engine, the rest is read-only."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path

import pytest

from eastgate import Authority, ManifestError, Question, QuestionError, Settings, SettingsError
from eastgate.authority.authority import programs_of
from eastgate.authority.reading import sort_documents
from eastgate.cluster import Pod, World
from eastgate.cluster.unread import Handling
from eastgate.dialects import reads
from eastgate.manifests import Manifests, read_manifests
from eastgate.reading.manifests import read, read_objects
from eastgate.reports.tables import Table
from eastgate.settings import networks
from tests.test_conformance import FILES, short, tables_in

SHOP = """
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: shop, labels: {app: open}}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: closed, namespace: shop}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: closed}}}]
  action: ALLOW
  rules: [{authorizationSource: {serviceAccounts: [web]}}]
"""
STRANGER = Question.of("sa:other/stranger", "pod:shop/cart", port=80)
WEB = Question.of("sa:shop/web", "pod:shop/cart", port=80)
ELSEWHERE = Settings(trust_domain="elsewhere.example")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(SHOP)
    return tmp_path


def cart(world: World) -> Pod:
    return next(one for one in world.objects.values() if isinstance(one, Pod))


# The world


def test_a_pod_that_is_put_is_decided_by_its_new_policies(shop: Path) -> None:
    authority = Authority(read_manifests([shop]))
    assert authority.decide(STRANGER).allowed
    prepared = authority.prepare(STRANGER)
    before = cart(authority.world)
    authority.update(put=[replace(before, labels={"app": "closed"})])
    assert not authority.decide(STRANGER).allowed
    assert not prepared.decide().allowed
    assert authority.decide(WEB).allowed
    authority.update(put=[before])
    assert authority.decide(STRANGER).allowed
    assert prepared.decide().allowed
    authority.update(remove=[before.id])
    for ask in (prepared.decide, lambda: authority.decide(STRANGER)):
        with pytest.raises(QuestionError):
            ask()


def test_a_prepared_answer_is_remembered_until_something_changes(shop: Path) -> None:
    authority = Authority(read_manifests([shop]))
    prepared = authority.prepare(STRANGER)
    before = cart(authority.world)
    for _ in range(2):
        assert prepared.decide().allowed
        assert prepared.decide() is prepared.decide()
        authority.update(put=[replace(before, labels={"app": "closed"})])
        assert not prepared.decide().allowed
        authority.update(put=[before])
        assert prepared.decide().allowed
        authority.update(put=[policy("open")])
        assert not prepared.decide().allowed
        authority.update(remove=["AuthorizationPolicy/shop/more"])
    assert prepared.decide().allowed
    authority.update(remove=[before.id])
    for _ in range(2):
        with pytest.raises(QuestionError):
            prepared.decide()


def test_the_world_that_an_authority_shows_cannot_be_changed(shop: Path) -> None:
    authority = Authority(read_manifests([shop]))
    for name in ("put", "remove", "update", "place"):
        assert not hasattr(authority.world, name)
    with pytest.raises(TypeError):
        authority.world.workloads["shop/cart"] = cart(authority.world)  # type: ignore[index]


def test_the_world_that_an_authority_shows_is_the_one_that_is_now(shop: Path) -> None:
    authority = Authority(read_manifests([shop]))
    world = authority.world
    authority.update(put=[{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new", "namespace": "shop"}}])
    assert "shop/new" in world.workloads
    assert authority.decide(Question.of("anonymous", "pod:shop/new", port=80)).allowed
    authority.update(remove=["Pod/shop/new"])
    assert "shop/new" not in world.workloads


def policy(labels: str, **spec: object) -> dict[str, object]:
    target = {"kind": "Pod", "selector": {"matchLabels": {"app": labels}}}
    rules = [{"authorizationSource": {"serviceAccounts": ["web"]}}]
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "more", "namespace": "shop"},
        "spec": {"targetRefs": [target], "action": "ALLOW", "rules": rules, **spec},
    }


def test_policies_are_put_and_removed(shop: Path) -> None:
    authority = Authority(read_manifests([shop]))
    authority.update(put=[policy("open")])
    assert not authority.decide(STRANGER).allowed
    assert [str(each.ref) for each in authority.policies] == [
        "AuthorizationPolicy/shop/closed",
        "AuthorizationPolicy/shop/more",
    ]
    (more,) = (each for each in authority.policies if each.ref.name == "more")
    authority.update(remove=[more.ref])
    assert authority.decide(STRANGER).allowed
    authority.update(put=[more])
    assert not authority.decide(STRANGER).allowed
    authority.update(put=[policy("nobody")])
    assert authority.decide(STRANGER).allowed


def test_what_has_errors_changes_nothing(shop: Path) -> None:
    authority = Authority(read_manifests([shop]))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new", "namespace": "shop"}}
    with pytest.raises(ManifestError, match="action"):
        authority.update(put=[pod, policy("open", action="PERHAPS")], remove=["Pod/shop/cart"])
    assert set(authority.world.workloads) == {"shop/cart"}
    assert authority.decide(STRANGER).allowed


def test_a_policy_with_errors_closes_what_it_targets_unless_the_authority_is_strict(shop: Path) -> None:
    authority = Authority(read_manifests([shop]), strict=False)
    prepared = authority.prepare(STRANGER)
    authority.update(put=[policy("open", action="PERHAPS")])
    assert not authority.enforced(STRANGER).allowed
    with pytest.raises(QuestionError, match="cannot be read"):
        prepared.decide()
    authority.update(put=[policy("nobody")])
    assert prepared.decide().allowed


def test_what_is_not_read_counts_when_it_is_put(shop: Path) -> None:
    authority = Authority(read_manifests([shop]))
    prepared = authority.prepare(STRANGER)
    network = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNetworkPolicy",
        "metadata": {"name": "n", "namespace": "shop"},
        "spec": {"endpointSelector": {}},
    }
    authority.update(put=[network])
    with pytest.raises(QuestionError, match="NetworkPolicy"):
        prepared.decide()
    authority.update(remove=["CiliumNetworkPolicy/shop/n"])
    assert prepared.decide().allowed


def test_other_settings_are_no_update(shop: Path) -> None:
    with pytest.raises(SettingsError):
        Authority(read_manifests([shop])).update(put=read_manifests([shop], ELSEWHERE))


def test_a_world_keeps_no_engine_alive(shop: Path) -> None:
    authority = Authority(read_manifests([shop]))
    world, engine = authority.world, weakref.ref(programs_of(authority))
    del authority
    gc.collect()
    assert engine() is None
    assert set(world.workloads) == {"shop/cart"}


def manifests_of(table: Table) -> Manifests:
    read_from = read(table.manifests, positioned=reads, bounds=table.bounds)
    reading = read_objects(table.objects, positioned=reads, into=read_from) if table.objects is not None else read_from
    return sort_documents(reading.documents, table.settings, reading.reporter)


def answers(authority: Authority, table: Table) -> list[object]:
    found: list[object] = []
    for case in table.cases:
        try:
            decision = authority.decide(case.question)
            found.append((case.name, decision.verdict, decision.policy, decision.rule, decision.status))
        except QuestionError as error:
            found.append((case.name, str(error)))
    return found


@pytest.mark.untraced  # tests/test_conformance.py has the same tables traced
@pytest.mark.parametrize("path", FILES, ids=short)
def test_a_world_that_comes_piece_by_piece_is_decided_as_one_that_was_there(path: Path) -> None:
    for table in tables_in(path):
        manifests = manifests_of(table)
        if not table.cases or manifests.reporter.errors:
            continue
        expected = answers(Authority(manifests, unread=Handling.IGNORE), table)
        for objects in (manifests.objects, manifests.objects[::-1]):
            authority = Authority(Manifests(manifests.settings, policies=manifests.policies), unread=Handling.IGNORE)
            often = max(1, len(objects) // 8)
            for number, one in enumerate(objects):
                if number % often == 0:
                    answers(authority, table)  # so that any stale result would stay
                    programs_of(authority).compile_all()
                authority.update(put=[one])
            assert answers(authority, table) == expected
        late = Authority(Manifests(manifests.settings), unread=Handling.IGNORE)
        answers(late, table)
        late.update(put=[*manifests.policies[::-1], *manifests.objects[::-1]])
        assert answers(late, table) == expected
        late.update(remove=[*(policy.ref for policy in late.policies), *late.world.objects])
        assert not late.policies
        assert not late.world.objects
        late.update(put=manifests)
        assert answers(late, table) == expected


@pytest.mark.parametrize("name", ["world", "engine", "settings", "keys"])
def test_what_an_authority_stands_on_is_not_replaced(shop: Path, name: str) -> None:
    authority = Authority(read_manifests([shop]))
    with pytest.raises(AttributeError):
        setattr(authority, name, getattr(authority, name))


# Settings


def test_an_authority_has_the_settings_that_its_manifests_were_read_with(shop: Path) -> None:
    assert Authority(read_manifests([shop], ELSEWHERE)).settings == ELSEWHERE
    assert Authority(read_manifests([shop], ELSEWHERE), ELSEWHERE).settings == ELSEWHERE
    assert Authority(read_manifests([shop]), Settings()).settings == Settings()


@pytest.mark.parametrize(("reading", "deciding"), [(None, ELSEWHERE), (ELSEWHERE, Settings())])
def test_other_settings_than_the_manifests_were_read_with_are_an_error(
    shop: Path, reading: Settings | None, deciding: Settings
) -> None:
    with pytest.raises(SettingsError, match=r"trustDomain: (elsewhere.example|cluster.local)"):
        Authority(read_manifests([shop], reading), deciding)


def test_settings_that_differ_in_an_unwritten_value_are_an_error_as_well(shop: Path) -> None:
    here = replace(Settings(), local_networks=networks("127.64.0.0/10"))
    with pytest.raises(SettingsError, match="other networks of this machine"):
        Authority(read_manifests([shop]), here)
