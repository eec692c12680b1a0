"""A policy with errors closes its targets, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eastgate
from eastgate import dialects
from eastgate.authority.reading import sort_documents
from eastgate.reading.manifests import read_text
from eastgate.settings import Settings
from tests.cluster.unread.conftest import WEB_TO_CART, WORLD, Run

WEB_TO_WEB = ("--from", "sa:shop/cart", "--to", "pod:shop/web", "--port", "80")
TO_BANK = ("--from", "sa:shop/cart", "--to", "pod:pay/bank", "--port", "80")
TO_GATEWAY = ("--from", "sa:shop/web", "--to", "gateway:shop/front", "--method", "GET", "--path", "/", "--host", "x")
QUESTIONS = {"cart": WEB_TO_CART, "web": WEB_TO_WEB, "bank": TO_BANK, "gateway": TO_GATEWAY}
GEP, LINKERD = "gateway.networking.x-k8s.io/v1alpha2", "policy.linkerd.io"


def policy(spec: str, api: str = GEP, kind: str = "AuthorizationPolicy", metadata: str = "namespace: shop") -> str:
    return f"---\napiVersion: {api}\nkind: {kind}\nmetadata: {{name: bad, {metadata}}}\nspec:\n{spec}"


def route(parent: str) -> str:
    spec = f"  parentRefs: [{parent}]\n\n  rules: [{{matches: [{{path: {{type: PathPrefx, value: /a}}}}]}}]\n"
    return policy(spec, "gateway.networking.k8s.io/v1", "HTTPRoute", "namespace: pay")


CART = "  targetRefs: [{kind: Pod, selector: {matchLabels: {app: cart}}}]\n\n  action: ALOW\n"
EVERYTHING = set(QUESTIONS)
SHOP = {"cart", "web", "gateway"}

# a policy with errors, and the questions without an answer because of it
CLOSES = [
    (policy(CART), {"cart"}),
    (policy("  targetRefs: [{kind: Service, name: cart}]\n\n  action: ALOW\n"), {"cart"}),
    (policy("  targetRefs: [{kind: Pod, selector: {}}]\n\n  action: ALOW\n"), {"cart", "web"}),
    (policy("  targetRefs: [{kind: Pod, selector: {matchLabels: {app: other}}}]\n\n  action: ALOW\n"), set()),
    # a repeated key: which one counts is unknown
    (policy(CART.replace("ALOW", "ALLOW") + "  action: DENY\n"), SHOP),
    (policy(CART.replace("ALOW", "ALLOW") + "  targetRefs: [{kind: Pod, selector: {matchLabels: {app: x}}}]\n"), SHOP),
    (policy(CART.replace("ALOW", "ALLOW"), metadata="namespace: other, namespace: shop"), EVERYTHING),
    (policy(CART.replace("ALOW", "ALLOW") + "metadata: {name: bad, namespace: other}\n"), EVERYTHING),
    # its target is unreadable, or has the error
    (policy("  targetRefs: [{kind: Pod, selector: {matchLabel: {app: cart}}}]\n\n  action: ALLOW\n"), SHOP),
    (policy("  targetRefs: [{kind: Pod, selector: {matchLabels: {app: 1}}}]\n\n  action: ALLOW\n"), SHOP),
    (policy("  targetRefs: [{kind: Pod, name: cart}]\n\n  action: ALLOW\n"), SHOP),
    (policy("  targetRef: [{kind: Pod, selector: {matchLabels: {app: other}}}]\n\n  action: ALLOW\n"), SHOP),
    (policy("  action: ALLOW\n"), SHOP),
    (policy("  targetRefs: []\n\n  action: ALLOW\n"), SHOP),
    # its namespace is unreadable or missing
    (policy(CART, metadata="namespace: Shop"), EVERYTHING),
    (policy(CART, kind="AuthorizationPolicies", metadata="labels: {}"), EVERYTHING),
    (policy(CART, kind="AuthorizationPolicies"), SHOP),
    (policy(CART, api="gateway.networking.x-k8s.io/v1"), SHOP),
    (policy(CART, metadata="namepsace: shop"), EVERYTHING),
    # a route, whose requests other routes would take: at its parents too
    (route("{name: front, namespace: shop}"), {"bank", "gateway"}),
    (route("{name: other, namespace: shop}"), {"bank"}),
    (route("{kind: Service, group: '', name: cart, namespace: shop}"), {"bank", *SHOP}),
    (route("{kind: ListenerSet, name: more, namespace: shop}"), EVERYTHING),
    (route("{name: front, namespace: 5}"), EVERYTHING),
    (route(""), EVERYTHING),
    # of the whole cluster
    (
        policy(
            "  subject: {podSelector: {matchLabels: {app: bank}}}\n\n  tier: Adm\n  priority: 1\n  action: DENY\n",
            "eastgate.dev/v1alpha1",
            "ClusterAuthorizationPolicy",
            "labels: {}",
        ),
        {"bank"},
    ),
    (
        policy(
            "  subject: {podSelectors: {}}\n\n  tier: Admin\n  priority: 1\n  action: DENY\n",
            "eastgate.dev/v1alpha1",
            "ClusterAuthorizationPolicy",
            "labels: {}",
        ),
        EVERYTHING,
    ),
    # of gateways
    (
        policy(
            "  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart}\n\n  rulez: []\n",
            "apim.kuadrant.io/v1alpha1",
            "AuthPolicy",
        ),
        {"gateway"},
    ),
    (
        policy(
            "  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: other}\n\n  rulez: []\n",
            "apim.kuadrant.io/v1alpha1",
            "AuthPolicy",
        ),
        set(),
    ),
    # Linkerd's
    (
        policy("  podSelector: {matchLabels: {app: web}}\n\n  port: 80\n  prot: x\n", f"{LINKERD}/v1beta3", "Server"),
        {"web"},
    ),
    (policy("  identitiez: ['*']\n", f"{LINKERD}/v1alpha1", "MeshTLSAuthentication"), set()),
]
REFERRING = (
    policy("  identitiez: ['*']\n", f"{LINKERD}/v1alpha1", "MeshTLSAuthentication", "namespace: pay")
    + """\
---
apiVersion: policy.linkerd.io/v1alpha1
kind: AuthorizationPolicy
metadata: {name: web, namespace: shop}
spec:
  targetRef: {group: apps, kind: Pod, name: web}
  requiredAuthenticationRefs: [{group: policy.linkerd.io, kind: MeshTLSAuthentication, name: bad, namespace: pay}]
""".replace("group: apps", "group: core")
)


@pytest.mark.parametrize(("manifest", "closed"), CLOSES)
def test_questions_about_its_targets_have_no_answer_and_others_have_theirs(
    manifest: str, closed: set[str], run: Run
) -> None:
    for name, question in QUESTIONS.items():
        result = run(manifest, "check", *question)
        assert result.exit_code == (2 if name in closed else 0), (name, result.output)
        if name in closed:
            assert "error[EG0120]: " in result.stderr
            assert "cannot be read, so that Eastgate cannot decide about " in result.stderr
        else:
            assert "not considered: 1 manifest about something else cannot be read" in result.stdout


@pytest.mark.parametrize(("manifest", "closed"), CLOSES)
def test_strict_is_as_before(manifest: str, closed: set[str], run: Run) -> None:
    for question in QUESTIONS.values():
        assert run(manifest, "check", *question, "--strict").exit_code == 2
    assert run(manifest, "lint").exit_code == 1
    assert run(manifest, "convert", "--to", "istio").exit_code == 2
    assert run(manifest, "get", "workloads", "--strict").exit_code == 2
    assert run(manifest, "get", "workloads").exit_code == 0
    assert closed is not None


def test_what_is_no_policy_leaves_open_what_is_in_its_namespace(run: Run) -> None:
    pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: pay, labels: {a: 1}}\n"
    assert run(policy(CART) + pod, "check", *TO_BANK).exit_code == 3
    assert run(policy(CART) + pod, "check", *WEB_TO_WEB).exit_code == 0
    assert run(policy(CART) + pod, "check", *TO_BANK, "--strict").exit_code == 2


def test_the_diagnostics_of_the_policy_come_with_it(run: Run) -> None:
    data = json.loads(run(policy(CART), "check", *WEB_TO_CART, "-o", "json").stdout)
    assert [one["code"] for one in data["diagnostics"]] == ["EG0120", "EG2013"]
    assert data["verdict"] is None


def test_what_only_others_refer_to_closes_what_those_target(run: Run) -> None:
    assert run(REFERRING, "check", *WEB_TO_WEB).exit_code == 2
    assert run(REFERRING, "check", *WEB_TO_CART).exit_code == 0
    assert run(REFERRING, "check", *TO_BANK).exit_code == 0


def test_a_deny_elsewhere_on_the_way_is_sure(run: Run) -> None:
    """A Service with a pod that is closed by an error and one that denies: it is denied, whatever the error hides."""
    manifest = (
        policy(CART)
        + """\
---
apiVersion: v1
kind: Pod
metadata: {name: cart-2, namespace: shop, labels: {app: cart2, more: all}}
---
apiVersion: v1
kind: Service
metadata: {name: carts, namespace: shop}
spec: {selector: {more: all}, ports: [{port: 80}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: nobody, namespace: shop}
spec: {targetRefs: [{kind: Pod, selector: {matchLabels: {more: all}}}], action: ALLOW}
"""
    )
    assert run(manifest, "check", "--from", "sa:shop/web", "--to", "service:shop/carts", "--port", "80").exit_code == 1


def test_describe_shows_it_as_closed_and_ends_with_2(run: Run) -> None:
    result = run(policy(CART), "describe", "pod", "cart")
    assert result.exit_code == 2
    assert "closed  AuthorizationPolicy/shop/bad cannot be read" in result.stdout
    assert "EG2013" in result.stderr
    assert run(policy(CART), "describe", "pod", "web").exit_code == 0


def test_get_policies_lists_it_and_ends_with_2(run: Run) -> None:
    result = run(policy(CART), "get", "policies")
    assert result.exit_code == 2
    assert "UNREADABLE" in result.stdout


def test_the_python_api_is_strict_by_default(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(WORLD + policy(CART))
    with pytest.raises(eastgate.ManifestError):
        eastgate.load(tmp_path)
    authority = eastgate.load(tmp_path, strict=False)
    assert [str(one.ref) for one in authority.rejected] == ["AuthorizationPolicy/shop/bad"]
    with pytest.raises(eastgate.QuestionError) as raised:
        authority.decide(eastgate.Question.of("sa:shop/web", "pod:shop/cart", port=80))
    assert [one.code.id for one in raised.value.diagnostics] == ["EG2013", "EG0120"]
    assert authority.decide(eastgate.Question.of("sa:shop/web", "pod:shop/web", port=80)).unconsidered.rejected == 1
    assert not authority.enforced(eastgate.Question.of("sa:shop/web", "pod:shop/cart", port=80)).allowed


OBJECTS = {
    "Namespace": "apiVersion: v1\nkind: Namespace\nmetadata: {name: other, labels: {a: 1}}\n",
    "Pod": "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: other, labels: {a: 1}}\n",
    "Service": "apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: other}\nspec: {selector: {a: 1}}\n",
    "Deployment": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: other}\nspec: 1\n",
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_errors_in_anything_but_a_policy_stop_everything(kind: str) -> None:
    reading = read_text("all.yaml", f"{WORLD}---\n{OBJECTS[kind]}", positioned=dialects.reads)
    manifests = sort_documents(reading.documents, Settings(), reading.reporter)
    assert manifests.unattributed_errors
    assert manifests.enforced_policies == []
    with pytest.raises(eastgate.ManifestError):
        eastgate.Authority(manifests, strict=False)


_GOOD = """\
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  targetRefs: [{{kind: Pod, selector: {{matchLabels: {{app: {app}}}}}}}]

  action: {action}
  rules: [{{authorizationSource: {{serviceAccounts: [shop/web]}}}}]
"""
_POLICIES = st.lists(
    st.tuples(
        st.sampled_from(["shop", "pay"]), st.sampled_from(["cart", "web", "bank"]), st.sampled_from(["ALLOW", "DENY"])
    ),
    max_size=4,
)


@given(good=_POLICIES, bad=_POLICIES)
def test_no_answer_is_wider_than_that_of_the_mended_policies(
    good: list[tuple[str, str, str]], bad: list[tuple[str, str, str]]
) -> None:
    def text(broken: bool) -> str:
        written = [
            _GOOD.format(name=f"p{number}", namespace=ns, app=app, action=f"{action}{'X' if broken and late else ''}")
            for number, (late, (ns, app, action)) in enumerate([*((False, p) for p in good), *((True, p) for p in bad)])
        ]
        return WORLD + "".join(written)

    def authority(written: str) -> eastgate.Authority:
        reading = read_text("all.yaml", written, positioned=dialects.reads)
        return eastgate.Authority(sort_documents(reading.documents, Settings(), reading.reporter), strict=False)

    broken, mended = authority(text(broken=True)), authority(text(broken=False))
    for source in ("sa:shop/web", "sa:pay/bank", "anonymous"):
        for to in ("pod:shop/cart", "pod:shop/web", "pod:pay/bank"):
            question = eastgate.Question.of(source, to, port=80)
            truth = mended.decide(question).allowed
            try:
                assert broken.decide(question).allowed is truth
            except eastgate.QuestionError:
                assert not broken.enforced(question).allowed
