"""The time to find the policies that target each pod by its labels."""

from __future__ import annotations

from random import Random

from bench.report import Section, Target
from bench.timing import once
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.cluster import Pod, PodsMatching, Selector, World
from eastgate.dialects.gep3779 import GROUP, Policy
from eastgate.dialects.gep3779.model import Action, Level
from eastgate.engine.attachment import Attachments
from eastgate.ir import PolicyRef
from eastgate.ir.labels import Operator, Requirement

__all__ = ["run"]

_SPAN = Span(SourceText("generated.yaml", ""), 1, 1, 1, 1)
_REPLICAS = 10
_PODS_PER_NAMESPACE = 250
_PLAIN_PODS = 200  # pods whose policies are also found without an index
_MAX_CPU_SECONDS = 5.0  # for the large world


def run(*, quick: bool) -> Section:
    """Measure each size; one row for each."""
    section = Section(
        "Label selectors",
        f"CPU. {_REPLICAS} replicas of each application, {_PODS_PER_NAMESPACE} pods a namespace; selectors of 1 to 3 "
        "labels, one in five with an expression. world: pods to an indexed world. file: policies to an index. attach: "
        "the policies of every pod. select: the pods of every policy. plain: each pod with each selector of its "
        f"namespace, without an index, as seconds for all pods (from {_PLAIN_PODS}); attach must find the same.",
        ("policies", "pods", "world s", "file s", "attach s", "attach us/pod", "select s", "select us/policy",
         "plain s", "times", "pairs"),
    )  # fmt: skip
    took = 0.0
    for policies, pods in ((1_000, 10_000),) if quick else ((1_000, 10_000), (10_000, 100_000)):
        row, took = _row(policies, pods)
        section.rows.append(row)
    if not quick:
        wanted = f"10,000 policies are attached to 100,000 pods in under {_MAX_CPU_SECONDS:.0f} s (file, attach)"
        section.targets = [Target(wanted, f"{took:.2f} s", took < _MAX_CPU_SECONDS)]
    return section


def _row(policy_count: int, pod_count: int) -> tuple[list[str | float], float]:
    random = Random(f"selectors/{policy_count}/{pod_count}")
    namespaces = pod_count // _PODS_PER_NAMESPACE
    pods = [_pod(number) for number in range(pod_count)]
    policies = [_policy(random, number, f"team-{number % namespaces}") for number in range(policy_count)]
    worlds: list[World] = []
    filed: list[Attachments[Policy]] = []
    attached: dict[str, tuple[str, ...]] = {}
    selected: list[int] = []

    def attach() -> None:
        of = filed[0].of
        for key, workload in worlds[0].workloads.items():
            attached[key] = tuple(one.policy.ref.name for one in of(workload))

    world = once(lambda: worlds.append(World.of(pods)))
    file = once(lambda: filed.append(Attachments(worlds[0], policies)))
    attaching = once(attach)
    select = once(lambda: selected.extend(len(worlds[0].select(one.targets[0])) for one in policies))
    plain = _plain(random.sample(pods, _PLAIN_PODS), policies, attached) * pod_count / _PLAIN_PODS
    pairs = sum(map(len, attached.values()))
    if pairs != sum(selected):
        raise AssertionError(f"policies select {sum(selected)} pods, but {pairs} are attached")
    row: list[str | float] = [
        policy_count, pod_count, world, file, attaching, attaching / pod_count * 1e6,
        select, select / policy_count * 1e6, plain, plain / attaching, pairs,
    ]  # fmt: skip
    return row, file + attaching


def _plain(pods: list[Pod], policies: list[Policy], attached: dict[str, tuple[str, ...]]) -> float:
    selectors: dict[str, list[tuple[str, Selector]]] = {}
    for policy in policies:
        for target in policy.targets:
            assert isinstance(target, PodsMatching)
            selectors.setdefault(target.namespace, []).append((policy.ref.name, target.selector))
    found: dict[str, list[str]] = {}

    def search() -> None:
        for pod in pods:
            in_namespace = selectors.get(pod.namespace, ())
            found[f"{pod.namespace}/{pod.name}"] = [name for name, one in in_namespace if one.matches(pod.labels)]

    seconds = once(search)
    for key, names in found.items():
        if sorted(names) != sorted(attached[key]):
            raise AssertionError(f"{key}: {sorted(names)}, but attached are {sorted(attached[key])}")
    return seconds


def _pod(number: int) -> Pod:
    namespace, place = divmod(number, _PODS_PER_NAMESPACE)
    app, replica = divmod(place, _REPLICAS)
    labels = {"app": f"app-{app}", "tier": f"tier-{app % 3}", "version": f"v{replica % 2}", "team": f"t{app % 5}"}
    return Pod(f"team-{namespace}", f"app-{app}-{replica}", labels, service_account=f"app-{app}")


def _policy(random: Random, number: int, namespace: str) -> Policy:
    app = random.randrange(_PODS_PER_NAMESPACE // _REPLICAS)
    labels = {"app": f"app-{app}"} if random.random() < 0.7 else {"tier": f"tier-{app % 3}"}
    if random.random() < 0.4:
        labels["version"] = f"v{random.randrange(2)}"
    if random.random() < 0.2:
        labels["team"] = f"t{app % 5}"
    other = Requirement("tier", Operator.NOT_IN, frozenset({f"tier-{(app + 1) % 3}"}))
    selector = Selector.of(labels, [other] if random.random() < 0.2 else [])
    ref = PolicyRef("AuthorizationPolicy", namespace, f"p{number}", GROUP)
    return Policy(ref, _SPAN, (PodsMatching(namespace, selector),), Action.ALLOW, Level.NETWORK, ())
