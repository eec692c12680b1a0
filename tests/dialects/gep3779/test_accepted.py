"""Each form of the API accepts the smallest and the largest valid policy, and reads it correctly."""

from __future__ import annotations

import pytest

from eastgate.cluster.targets import PodsAcross, PodsMatching, PodsOfService, Target
from eastgate.dialects.gep3779.model import Action, Level, Tier
from eastgate.ir import PolicyRef
from eastgate.ir.labels import Operator, Requirement, Selector
from eastgate.settings import Settings
from tests.dialects.reading import AMBIENT, GROUP, SIDECAR, judge, manifest, policy

EVERY_POD = PodsMatching("shop", Selector.of())
BEHIND_A = PodsOfService("shop", "a")

MINIMAL = {
    "v1alpha2": "targetRefs: [{kind: Pod, selector: {}}]\naction: ALLOW",
    "v1alpha1": "targetRefs: {kind: Pod, selector: {}}\naction: ALLOW",
    "x": "targetRefs: [{kind: Pod, selector: {}}]\naction: ALLOW\nenforcementLevel: Network",
    "cluster": "tier: Admin\npriority: 0\naction: ALLOW",
}
SELECTOR = """
    selector:
      matchLabels: {app: reviews}
      matchExpressions: [{key: version, operator: NotIn, values: [v3]}]
"""
MAXIMAL = {
    "v1alpha2": f"""
targetRefs:
  - group: ""
    kind: Pod
{SELECTOR}
  - {{group: core, kind: Pod, selector: {{}}}}
action: DENY
enforcementLevel: APPLICATION
rules:
  - authorizationSource:
      identities: [spiffe://other.example/billing]
      serviceAccounts: [shop/web, "pay/*", web]
    networkAttributes: {{ports: [1, 65535]}}
    applicationAttributes: {{paths: [/, "/api/*", "*/health", "*"], methods: [GET, purge]}}
  - {{}}
""",
    "v1alpha1": f"""
targetRefs:
    group: core
    kind: Pod
{SELECTOR}
action: DENY
tcpRules:
  - sources:
      - identities: [spiffe://other.example/billing]
      - serviceAccounts: [shop/web, pay/gate]
      - namespaces: [ops]
    attributes:
      - ports: [80]
      - ports: [443, 8443]
  - {{}}
""",
    "x": f"""
targetRefs:
  - group: ""
    kind: Pod
{SELECTOR}
action: ALLOW
enforcementLevel: NETWORK
rules:
  - sources:
      - {{type: SPIFFE, spiffe: spiffe://other.example/billing}}
      - {{type: ServiceAccount, serviceAccount: {{name: web}}}}
      - {{type: ServiceAccount, serviceAccount: {{namespace: pay, name: "*"}}}}
    networkAttributes: {{ports: [80]}}
  - {{}}
""",
    "cluster": """
tier: Baseline
priority: 1000
subject:
  namespaceSelector: {matchLabels: {team: pay}}
  podSelector: {matchExpressions: [{key: app, operator: Exists}]}
action: PASS
enforcementLevel: application
rules:
  - authorizationSource:
      identities: [spiffe://other.example/billing]
      serviceAccounts: [shop/web, "pay/*"]
    networkAttributes: {ports: [80]}
    applicationAttributes: {paths: ["/api/*"], methods: [GET]}
  - {}
""",
}


@pytest.mark.parametrize("form", ["v1alpha2", "v1alpha1", "x"])
def test_the_least_that_can_be_written_allows_nothing_to_the_pods_it_targets(form: str) -> None:
    read = policy(manifest(form, MINIMAL[form]))
    kind = "XAuthorizationPolicy" if form == "x" else "AuthorizationPolicy"
    assert read.ref == PolicyRef(kind, "shop", "p", GROUP)
    assert (read.targets, read.action, read.rules) == ((EVERY_POD,), Action.ALLOW, ())
    assert (read.level, read.tier, read.priority, read.audit) == (Level.NETWORK, Tier.NAMESPACED, 0, False)


def test_the_least_of_a_cluster_policy_is_about_every_pod_of_every_namespace() -> None:
    read = policy(manifest("cluster", MINIMAL["cluster"]))
    assert read.ref == PolicyRef("ClusterAuthorizationPolicy", None, "p", "eastgate.dev")
    assert read.targets == (PodsAcross(Selector.of(), Selector.of()),)
    assert (read.level, read.tier, read.priority) == (Level.NETWORK, Tier.ADMIN, 0)


SELECTED = Selector.of({"app": "reviews"}, [Requirement("version", Operator.NOT_IN, frozenset({"v3"}))])
ACROSS = PodsAcross(Selector.of({"team": "pay"}), Selector.of({}, [Requirement("app", Operator.EXISTS)]))


@pytest.mark.parametrize(
    ("form", "targets", "action", "level"),
    [
        ("v1alpha2", (PodsMatching("shop", SELECTED), EVERY_POD), Action.DENY, Level.APPLICATION),
        ("v1alpha1", (PodsMatching("shop", SELECTED),), Action.DENY, Level.NETWORK),
        ("x", (PodsMatching("shop", SELECTED),), Action.ALLOW, Level.NETWORK),
        ("cluster", (ACROSS,), Action.PASS, Level.APPLICATION),
    ],
)
def test_the_most_that_can_be_written_is_read_in_full(
    form: str, targets: tuple[Target, ...], action: Action, level: Level
) -> None:
    read = policy(manifest(form, MAXIMAL[form]))
    assert (read.targets, read.action, read.level) == (targets, action, level)
    assert len(read.rules) == 2
    if form == "cluster":
        assert (read.tier, read.priority) == (Tier.BASELINE, 1000)


@pytest.mark.parametrize("form", MAXIMAL)
def test_a_policy_without_a_namespace_is_of_the_default_one(form: str) -> None:
    read = policy(manifest(form, MINIMAL[form], "{name: p}"))
    assert read.ref.namespace == (None if form == "cluster" else "default")
    assert form == "cluster" or read.targets == (PodsMatching("default", Selector.of()),)


@pytest.mark.parametrize("form", MAXIMAL)
@pytest.mark.parametrize(("mode", "audit"), [("audit", True), ("enforce", False)])
def test_every_form_can_be_audited_first(form: str, mode: str, audit: bool) -> None:
    metadata = f"{{name: p, namespace: shop, annotations: {{eastgate.dev/mode: {mode}}}}}"
    assert policy(manifest(form, MINIMAL[form], metadata)).audit is audit


TARGETS: list[tuple[str, str, tuple[Target, ...]]] = [
    # 000 and upstream: a list. 001: its Go type is one object, and its text describes several; Eastgate accepts both
    ("v1alpha2", "[{kind: Pod, selector: {}}]", (EVERY_POD,)),
    ("v1alpha1", "[{kind: Pod, selector: {}}]", (EVERY_POD,)),
    ("v1alpha1", "{kind: Pod, selector: {}}", (EVERY_POD,)),
    ("v1alpha1", "{kind: Service, name: reviews}", (PodsOfService("shop", "reviews"),)),
    ("v1alpha1", "[{kind: Service, name: a}, {kind: Service, name: b}]", (BEHIND_A, PodsOfService("shop", "b"))),
    ("v1alpha2", "[{kind: Service, name: a}, {kind: Pod, selector: {}}]", (BEHIND_A, EVERY_POD)),
    # the core group has two spellings, and is the default
    *(
        (form, f"[{{{group}kind: Pod, selector: {{}}}}]", (EVERY_POD,))
        for form in ("v1alpha2", "v1alpha1", "x")
        for group in ("", 'group: "", ', "group: core, ")
    ),
    *(
        (form, f"[{{{group}kind: Service, name: a}}]", (BEHIND_A,))
        for form in ("v1alpha2", "v1alpha1")
        for group in ("", 'group: "", ', "group: core, ")
    ),
]


@pytest.mark.parametrize(("form", "targets", "expected"), TARGETS)
def test_targets_are_pods_by_label_or_a_service_by_name(form: str, targets: str, expected: tuple[Target, ...]) -> None:
    level = "\nenforcementLevel: Network" if form == "x" else ""
    assert policy(manifest(form, f"targetRefs: {targets}\naction: ALLOW{level}")).targets == expected


@pytest.mark.parametrize(
    ("form", "written", "level"),
    [
        ("v1alpha2", "NETWORK", Level.NETWORK),
        ("v1alpha2", "network", Level.NETWORK),
        ("v1alpha2", "Network", Level.NETWORK),
        ("v1alpha2", "APPLICATION", Level.APPLICATION),
        ("v1alpha2", "application", Level.APPLICATION),
        ("v1alpha2", "aPpLiCaTiOn", Level.APPLICATION),
        ("x", "Network", Level.NETWORK),
        ("x", "NETWORK", Level.NETWORK),
        ("x", "network", Level.NETWORK),
        ("cluster", "Application", Level.APPLICATION),
        ("cluster", "nEtWoRk", Level.NETWORK),
    ],
)
def test_a_level_may_be_written_in_any_letter_case(form: str, written: str, level: Level) -> None:
    spec = MINIMAL[form].replace("\nenforcementLevel: Network", "") + f"\nenforcementLevel: {written}"
    assert policy(manifest(form, spec)).level is level


# The draft's “VAP Validation” list, and ruling 12: it applies where the level is written.
LEVELS_AND_TARGETS = [
    (SIDECAR, "enforcementLevel: NETWORK", "Pod", True),
    (SIDECAR, "enforcementLevel: NETWORK", "Service", False),
    (SIDECAR, "enforcementLevel: APPLICATION", "Pod", True),
    (SIDECAR, "enforcementLevel: APPLICATION", "Service", False),
    (SIDECAR, "", "Pod", True),
    (SIDECAR, "", "Service", True),
    (AMBIENT, "enforcementLevel: NETWORK", "Pod", True),
    (AMBIENT, "enforcementLevel: NETWORK", "Service", False),
    (AMBIENT, "enforcementLevel: APPLICATION", "Pod", False),
    (AMBIENT, "enforcementLevel: APPLICATION", "Service", True),
    (AMBIENT, "", "Pod", True),
    (AMBIENT, "", "Service", True),
]


@pytest.mark.parametrize(("settings", "level", "kind", "accepted"), LEVELS_AND_TARGETS)
def test_the_mesh_decides_which_targets_a_level_may_have(
    settings: Settings, level: str, kind: str, accepted: bool
) -> None:
    target = "{kind: Pod, selector: {}}" if kind == "Pod" else "{kind: Service, name: reviews}"
    text = manifest("v1alpha2", f"targetRefs: [{target}]\naction: ALLOW\n{level}")
    read, found = judge(text, settings)
    assert (read is not None, found == []) == (accepted, accepted)
