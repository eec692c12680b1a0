"""An unreadable part stops no other answer. An answer that it could change tells so, and is never a plain ALLOW."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

from eastgate import from_text
from eastgate.authority.authority import Authority
from eastgate.authority.leaving_out import leave_out
from eastgate.authority.reading import Manifests, sort_reading
from eastgate.cli import main
from eastgate.cluster.question import Question
from eastgate.dialects import reads
from eastgate.reading.manifests import read_text
from eastgate.reading.repository import LeftOut
from eastgate.settings import Settings
from tests.cluster.unread.conftest import TO_GATEWAY, WEB_TO_CART, WORLD, Run

TO_BANK = ("--from", "sa:shop/cart", "--to", "pod:pay/bank", "--port", "80")
IN_PAY = ("--from", "sa:pay/bank", "--to", "pod:pay/bank", "--port", "80")


def policy(spec: str, namespace: str = "pay", kind: str = "NetworkPolicy") -> str:
    head = f"apiVersion: networking.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: x\n  namespace: {namespace}\n"
    return f"{head}spec:\n{spec}"


ANYTHING = "a: [\napiVersion: v1\nkind: NetworkPolicy\n"

# the unreadable part, and the exit status of three questions: to cart in shop, to bank in pay, through the gateway
PARTS = {
    "bad syntax that may hold anything": (ANYTHING, 3, 3, 3),
    "bad syntax behind the head of a policy": (policy("  podSelector: {\n"), 0, 2, 0),
    "the head of a policy is written again": (policy("  podSelector: {\n") + "kind: Pod\n", 3, 3, 3),
    "the namespace may follow": ("kind: NetworkPolicy\nmetadata:\n  name: x\n  y: [\n  namespace: shop\n", 3, 3, 3),
    "bad syntax behind the head of a pod": ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: [\n", 0, 0, 0),
    "bad syntax in a pod of pay": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: pay}\nspec: [\n",
        *(0, 3, 0),
    ),
    "bad syntax behind the head of a kind that is not used": (
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: x, namespace: shop}\nspec: [\n",
        *(0, 0, 0),
    ),
    "bad syntax in a list with a name": (
        "apiVersion: v1\nkind: List\nmetadata: {name: x}\nitems:\n- apiVersion: networking.k8s.io/v1\n"
        "  kind: NetworkPolicy\n  metadata: {name: x}\n  spec: [\n",
        *(3, 3, 3),
    ),
    "bad syntax in what kubectl takes for a list": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nitems:\n- apiVersion: networking.k8s.io/v1\n"
        "  kind: NetworkPolicy\n  metadata: {name: x}\n  spec: [\n",
        *(3, 3, 3),
    ),
    "bad syntax in a template of OpenShift": (
        "apiVersion: template.openshift.io/v1\nkind: Template\nmetadata: {name: x}\nobjects:\n"
        "- apiVersion: networking.k8s.io/v1\n  kind: NetworkPolicy\n  metadata: {name: x}\n  spec: [\n",
        *(3, 3, 3),
    ),
    "a policy with another expression of Flux": (policy("  podSelector: {matchLabels: {app: '${APP,,}'}}\n"), 0, 3, 0),
    "a policy with a value that SOPS has encrypted": (
        policy("  podSelector: {matchLabels: {app: 'ENC[AES256_GCM,data:eA==,type:str]'}}\nsops: {mac: x}\n"),
        *(0, 3, 0),
    ),
    "a variable in a label by which policies select": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: pay, labels: {version: '${TAG}'}}\n"
        "spec: {containers: [{name: c, image: x}]}\n",
        *(0, 3, 0),
    ),
    "a pod with errors": ("apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: pay, labels: {a: 1}}\n", 0, 3, 0),
    "a template": ("apiVersion: v1\nkind: {{ .Values.kind }}\nmetadata: {name: x}\n", 3, 3, 3),
    "a policy without a name": (
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nspec: {podSelector: {}}\n",
        3,
        3,
        3,
    ),
    "a policy with a variable in its selector": (policy("  podSelector: {matchLabels: {app: '${APP}'}}\n"), 0, 3, 0),
    "a policy with a variable in a rule": (
        policy(
            "  podSelector: {matchLabels: {app: bank}}\n"
            "  ingress: [{from: [{podSelector: {matchLabels: {a: '${A}'}}}]}]\n"
        ),
        *(0, 3, 0),
    ),
    "a policy in a namespace that is to be filled in": (policy("  podSelector: {}\n", "<your-namespace>"), 3, 3, 3),
    "an unread policy with a variable": (
        "apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: x, namespace: pay}\n"
        "spec: {endpointSelector: {matchLabels: {app: '${APP}'}}}\n",
        *(3, 3, 3),
    ),
    "a route with a host that is to be filled in": (
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: x, namespace: shop}\n"
        "spec: {parentRefs: [{name: front}], hostnames: ['<your-domain>']}\n",
        *(0, 0, 3),
    ),
    "a variable in a field that decides nothing": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: pay, labels: {a/version: '${TAG}'}}\n"
        "spec: {containers: [{name: c, image: 'x:${TAG}', env: [{name: A, value: '${A}'}]}]}\n",
        *(0, 0, 0),
    ),
    "a Secret with a placeholder": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: pay}\ndata: {password: <your-password>}\n",
        *(0, 0, 0),
    ),
    "a Secret with what stands for its values": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: pay}\n"
        "data: {token: API_TOKEN, account: [SERVICE_ACCOUNT], certificate: ...base64 of it...}\n",
        *(0, 0, 0),
    ),
    "a Secret with invalid data": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: pay}\ndata: {password: a}\n",
        *(0, 0, 0),  # no policy reads it
    ),
    "a Secret with an error": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: pay}\ndata: a\n",
        *(0, 3, 0),
    ),
    "a Secret that SOPS has encrypted": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: pay}\ndata: {password: 'ENC[AES256,data:x]'}\n"
        "sops: {version: 3.7.3}\n",
        *(0, 0, 0),
    ),
    "a manifest that SOPS has encrypted whole": (
        "apiVersion: ENC[x]\nkind: ENC[y]\nmetadata: {name: ENC[z]}\nsops: {version: 3.7.3}\n",
        *(3, 3, 3),
    ),
    "a policy beside the key of SOPS": (policy("  podSelector: {matchLabels: {app: x}}\n") + "sops: {a: b}\n", 0, 0, 0),
}


@pytest.mark.parametrize("name", PARTS)
def test_only_answers_that_a_part_could_change_are_partial(name: str, run: Run) -> None:
    text, *statuses = PARTS[name]
    for question, status in zip((WEB_TO_CART, TO_BANK, TO_GATEWAY), statuses, strict=True):
        result = run(text, "check", *question)
        assert result.exit_code == status, (name, question, result.output)
        assert ("(from what was read)" in result.stdout) is (status == 3), result.output
        assert ("left out: " in result.stdout) is (status == 3)
        for unread in ("ignore", "warn"):
            assert run(text, "check", *question, "--unread", unread).exit_code == status
        if any(statuses):
            assert run(text, "check", *question, "--strict").exit_code == 2


def test_a_policy_with_a_variable_denies_what_it_targets(run: Run) -> None:
    text = policy("  podSelector: {matchLabels: {app: bank}}\n  ingress: [{ports: [{port: '${PORT}'}]}]\n")
    result = run(text, "check", *TO_BANK)
    assert result.exit_code == 3
    assert result.stdout.startswith("DENY (from what was read)  NetworkPolicy/pay/x which cannot be read denies it")
    assert "a placeholder: `${PORT}`; fill it in, or leave the file out: --exclude" in result.stdout


def test_json_says_that_it_is_incomplete_and_what_is_left_out(run: Run) -> None:
    answer = json.loads(run(ANYTHING, "check", *WEB_TO_CART, "-o", "json").stdout)
    assert (answer["verdict"], answer["complete"], answer["unconsidered"]) == ("allow", False, [])
    (part,) = answer["leftOut"]
    assert (part["what"], part["where"], part["canDecide"]) == ("a document", "more.yaml:3", True)


def _bad_pods(labels: Iterable[str]) -> str:
    return "".join(
        f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: x{number}, namespace: shop, labels: {{{label}}}}}\n"
        for number, label in enumerate(labels)
    )


def test_parts_with_eight_reasons_take_five_lines(run: Run) -> None:
    pods = _bad_pods(f"{letter}: 1" for letter in "abcdefgh")
    result = run(pods, "check", *WEB_TO_CART)
    assert result.stdout.count("left out: Pod shop/x") == 5
    assert "left out: 3 more: eastgate get environments, or -v" in result.stdout
    assert run(pods, "check", *WEB_TO_CART, "-v").stderr.count("left out: Pod shop/x") == 8


def test_what_is_left_out_for_one_reason_is_one_line(run: Run) -> None:
    pods = _bad_pods("a: 1" for _ in range(8))
    (line,) = (line for line in run(pods, "check", *WEB_TO_CART).stdout.splitlines() if line.startswith("left out: "))
    assert line.count("Pod shop/x") == 3
    assert " and 5 more: `a` in `metadata.labels` is a number, not a string" in line
    assert line.endswith("(they may be about anything in shop)")
    assert run(pods, "check", *WEB_TO_CART, "-v").stderr.count("left out: Pod shop/x") == 8


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (("describe", "pod", "cart"), "(from what was read)"),
        (("graph",), "(from what was read)"),
        (("get", "pods"), "NAMESPACE"),
    ],
)
def test_commands_that_list_objects_report_it(words: tuple[str, ...], first: str, run: Run) -> None:
    result = run(ANYTHING, *words)
    assert result.exit_code == 3
    assert result.stdout.startswith(first)
    assert "left out: a document (more.yaml:3)" in result.output
    assert run(ANYTHING, *words, "--strict").exit_code == 2
    if words[0] != "get":
        data = json.loads(run(ANYTHING, *words, "-o", "json").stdout)
        assert (data["complete"], len(data["leftOut"])) == (False, 1)


def test_lint_shows_what_it_finds_beside_the_errors(run: Run) -> None:
    unused = policy("  podSelector: {}\n  ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.0.0.0/8]}}]}]\n")
    allow_all = policy("  podSelector: {}\n  ingress: [{}]\n", "shop").replace("name: x", "name: all")
    result = run(f"{allow_all}---\n{unused}", "lint")
    assert result.exit_code == 1
    assert "EG6303" in result.output
    assert "error[" in result.output


def test_lint_does_not_miss_what_may_be_in_a_part_that_cannot_be_read(run: Run) -> None:
    lonely = policy("  podSelector: {matchLabels: {app: nobody}}\n", "shop")
    assert "EG6001" in run(lonely, "lint").output
    assert "EG6001" not in run(f"{lonely}---\n{ANYTHING}", "lint").output


@pytest.mark.parametrize(
    "paths", [("-f", "nothing.yaml"), ("-f", "empty.yaml"), ("-k", "."), ("-f", ".", "--exclude", "!")]
)
def test_options_that_name_nothing_stop_everything(paths: tuple[str, ...], run: Run) -> None:
    assert run(WORLD.partition("---")[0].replace("name: cart", "name: y"), "check", *paths, *IN_PAY).exit_code == 2


def test_where_nothing_can_be_read_there_is_no_answer() -> None:
    for text in (ANYTHING, "apiVersion: v1\nkind: Pod\nmetadata: {name: x, labels: {a: 1}}\n"):
        reading = read_text("m.yaml", text, positioned=reads)
        manifests = sort_reading(reading, Settings())
        leave_out(manifests)
        assert manifests.unattributed_errors


# Parts without an error: an environment's


def _with_part(part: LeftOut) -> Manifests:
    reading = read_text("m.yaml", WORLD, positioned=reads)
    reading.unbuilt.append(part)
    return sort_reading(reading, Settings())


def test_a_part_that_was_not_built_counts_in_every_answer() -> None:
    manifests = _with_part(LeftOut("chart redis", "charts/redis", "no helm"))
    leave_out(manifests)
    authority = Authority(manifests, strict=False)
    question = Question.of("sa:shop/web", "pod:shop/cart", port=80)
    with pytest.raises(ValueError, match="unread objects could change the answer"):
        authority.decide(question)
    assert manifests.stopping(strict=True)
    idle = _with_part(LeftOut("dashboard", "d.json", "too large", can_decide=False))
    assert Authority(idle).decide(question).complete


def test_the_python_api_leaves_nothing_out_by_default() -> None:
    with pytest.raises(ValueError, match="placeholder"):
        from_text(WORLD + "---\n" + policy("  podSelector: {matchLabels: {app: '${APP}'}}\n"))


# Policies that are written twice


def test_two_policies_of_one_name_close_what_either_targets(run: Run) -> None:
    one = policy("  podSelector: {matchLabels: {app: cart}}\n", "shop")
    other = policy("  podSelector: {matchLabels: {app: web}}\n", "shop")
    to_web = ("--from", "sa:shop/cart", "--to", "pod:shop/web", "--port", "80")
    for question, status in ((WEB_TO_CART, 2), (to_web, 2), (IN_PAY, 0)):
        result = run(f"{one}---\n{other}", "check", *question)
        assert result.exit_code == status, result.output
    assert run(f"{one}---\n{one}", "check", *WEB_TO_CART).exit_code == 1


# Commands about more than one answer


def test_a_table_fails_and_its_cases_are_decided(tmp_path: Path, run: Run) -> None:
    case = "{name: %s, from: sa:shop/web, to: pod:%s, port: 80, expect: allow}"
    cases = ", ".join((case % ("cart", "shop/cart"), case % ("bank", "pay/bank")))
    table = f"apiVersion: eastgate.dev/v1alpha1\nkind: DecisionTest\nmetadata: {{name: t}}\nspec: {{cases: [{cases}],\n"
    (tmp_path / "t.yaml").write_text(f"{table} manifests: [world.yaml, more.yaml]}}\n")
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: pay, labels: {a: 1}}\n"
    run(pod, "get", "pods")
    result = CliRunner().invoke(main, ["test", "t.yaml"], catch_exceptions=False)
    assert result.exit_code == 1
    assert "1 passed, 2 failed" in result.stdout
    assert "allow considers only what was read: left out: Pod pay/x" in result.stdout


def test_a_comparison_is_not_proven(tmp_path: Path, run: Run) -> None:
    run(ANYTHING, "get", "pods")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "world.yaml").write_text(WORLD)
    (tmp_path / "new" / "more.yaml").write_text(ANYTHING)
    (tmp_path / "old.yaml").write_text(WORLD)
    result = CliRunner().invoke(main, ["diff", "old.yaml", "new"], catch_exceptions=False)
    assert result.exit_code == 3
    assert "not proven: left out: a document (new/more.yaml:3)" in result.stdout
    (tmp_path / "more.yaml").write_text(f"{WORLD}---\n{ANYTHING}")
    same = CliRunner().invoke(main, ["diff", "more.yaml", "more.yaml"], catch_exceptions=False)
    assert same.exit_code == 0


def test_a_conversion_names_policies_that_are_to_be_filled_in(run: Run) -> None:
    text = (
        "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: x, namespace: shop}\n"
        "spec: {action: DENY, rules: [{to: [{operation: {hosts: ['${DOMAIN}']}}]}]}\n"
    )
    result = run(text, "convert", "--to", "istio")
    assert result.exit_code == 3
    assert "left out: AuthorizationPolicy shop/x" in result.stderr
