"""The verbs of the public API: they are those of the command line, and their errors name the wrong argument."""

from __future__ import annotations

import asyncio
import io
import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import eastgate
from eastgate import Question, Settings
from eastgate.cli import main
from eastgate.manifests import read_manifests

SHOP = Path(__file__).parents[2] / "examples" / "shop"
MANIFESTS = SHOP / "manifests"
POLICY = """
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: shop, labels: {app: cart}}
spec: {containers: [{name: c, ports: [{containerPort: 80}]}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: shop}
spec: {podSelector: {}}
"""
ENDS = ("anonymous", "pod:shop/cart")


@pytest.fixture(scope="module")
def authority() -> eastgate.Authority:
    return eastgate.load(MANIFESTS)


def printed(*arguments: str) -> Any:
    """Return the JSON output of a command for the same manifests."""
    return json.loads(CliRunner().invoke(main, [*arguments, "-f", str(MANIFESTS), "-o", "json"]).stdout)


# Verbs


def test_check_and_explain_answer_as_the_commands_do(authority: eastgate.Authority) -> None:
    request = ("--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080", "--method", "GET")
    decision = authority.check("sa:shop/web", "pod:shop/cart", port=8080, method="GET")
    told = printed("check", *request)
    assert {key: told[key] for key in decision.to_json()} == decision.to_json()
    text = authority.explain("sa:shop/web", "pod:shop/cart", port=8080, method="GET")
    assert text == authority.explain(decision) == printed("explain", *request)["explanation"]
    assert authority.explain(decision, verbose=True) == printed("explain", *request, "-v")["explanation"]


def test_ends_have_the_namespace_of_the_settings() -> None:
    authority = eastgate.load(MANIFESTS, settings=Settings(namespace="shop"))
    assert authority.check("pod:web", "pod:cart", port=8080)
    assert authority.check("deploy/web", "svc/cart", port=80)


def test_the_graph_is_that_of_the_command(authority: eastgate.Authority) -> None:
    assert authority.graph().to_json() == printed("graph")
    part = authority.graph(sources="sa:shop/*", targets=["pod:shop/cart"], port=8080, denied=True)
    assert part.to_json() == printed(
        "graph", "--from", "sa:shop/*", "--to", "pod:shop/cart", "--port", "8080", "--denied"
    )
    assert authority.graph(by="namespace").to_json() == printed("graph", "--by", "namespace")


def test_findings_and_descriptions_equal_those_of_the_commands(authority: eastgate.Authority) -> None:
    found = {(finding.code.id, finding.message) for finding in authority.lint()}
    assert found == {(each["code"], each["message"]) for each in printed("lint")["findings"]}
    (described,) = authority.describe("pod", "cart", "shop")
    assert described.to_json() == printed("describe", "pod", "cart", "-n", "shop")
    with pytest.raises(eastgate.QuestionError, match="no manifest declares pod nothing"):
        authority.describe("pod", "nothing")


def test_listings_equal_those_of_the_command(authority: eastgate.Authority) -> None:
    listed = [row.name for row in authority.get("workloads", namespace="shop").rows]
    assert listed == ["cart", "payments", "web"]
    assert [row.name for row in authority.get("pods", selector="tier=back").rows] == ["cart", "payments"]
    assert [row.name for row in authority.get("pods", "cart").rows] == ["cart"]


def test_a_difference_is_a_method_of_the_older(authority: eastgate.Authority) -> None:
    new = eastgate.load(MANIFESTS)
    assert authority.diff(new).equal
    new.update(remove=["AuthorizationPolicy/shop/cart-from-web"])
    (change,) = authority.diff(new).changes
    assert (change.is_wider, change.requests.destinations) == (False, ("pod:shop/cart",))
    with pytest.raises(eastgate.SettingsError, match="the same settings"):
        authority.diff(eastgate.load(MANIFESTS, settings=Settings(trust_domain="other")))


def test_a_conversion_is_that_of_the_command(authority: eastgate.Authority) -> None:
    conversion = authority.convert("istio", assume="istio-identities")
    told = printed("convert", "--to", "istio", "--assume", "istio-identities")
    assert conversion.manifests == told["converted"]
    assert [loss.to_json() for loss in conversion.losses] == told["losses"]
    with pytest.raises(ValueError, match=r"^to must be one of .*istio.*, not 'itsio'$"):
        authority.convert("itsio")
    lenient = eastgate.from_text(POLICY.replace("podSelector", "podSelectr"), strict=False)
    with pytest.raises(eastgate.ManifestError, match="podSelectr"):
        lenient.convert("istio")


def test_tables_and_definitions_need_no_authority() -> None:
    run = eastgate.test(SHOP, coverage=True)
    assert run.passed > 10
    assert run.failed == 0
    assert run.coverage is not None
    assert [crd["metadata"]["name"] for crd in eastgate.crds("ClusterAuthorizationPolicy")] == [
        "clusterauthorizationpolicies.eastgate.dev"
    ]
    assert len(eastgate.crds()) > 1


# Manifests


def test_a_decision_is_true_where_it_allows() -> None:
    authority = eastgate.from_text(POLICY)
    assert not authority.check(*ENDS, port=80)
    authority.update(remove=["NetworkPolicy/shop/closed"])
    assert authority.check(*ENDS, port=80)


def test_manifests_may_be_a_text_or_objects_and_one_path_may_stand_for_several(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(POLICY)
    objects = [*yaml.safe_load_all(POLICY)]
    authorities = [
        eastgate.load(str(tmp_path)),
        eastgate.load(tmp_path, exclude="*.json"),
        eastgate.from_text(POLICY),
        eastgate.from_objects(objects),
        eastgate.from_objects(iter(objects)),
        eastgate.Authority(read_manifests(str(tmp_path))),
        eastgate.Authority(read_manifests(tmp_path)),
    ]
    assert [authority.check(*ENDS, port=80).policy for authority in authorities] == [None] * 7
    assert [[str(policy.ref) for policy in each.policies] for each in authorities] == [
        ["NetworkPolicy/shop/closed"]
    ] * 7


def test_errors_of_a_text_have_lines() -> None:
    with pytest.raises(eastgate.ManifestError) as failed:
        eastgate.from_text(POLICY.replace("podSelector", "podSelectr"))
    assert [error.span.line for error in failed.value.diagnostics if error.span is not None] == [10]


def test_errors_carry_all_diagnostics(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("kind: Pod\n---\napiVersion: v1\nkind: Pod\nmetadata: {}\n")
    with pytest.raises(eastgate.ManifestError) as caught:
        eastgate.load(tmp_path)
    assert len(caught.value.diagnostics) == 3
    assert "error[EG" in str(caught.value)


def test_tracebacks_show_public_names() -> None:
    with pytest.raises(eastgate.QuestionError) as raised:
        eastgate.from_text(POLICY).check("sa:shop/web", "pod:shop/nothing")
    (line,) = traceback.format_exception_only(raised.value)
    assert line.startswith("eastgate.QuestionError: no manifest declares")


# Errors name the argument

Call = Callable[[eastgate.Authority], object]
REFUSED: list[tuple[Call, str]] = [
    (lambda a: a.check(*ENDS, port="8080"), "port must be an int, not str: '8080'"),  # type: ignore[arg-type]
    (lambda a: a.check(*ENDS, port=True), "port must be an int, not bool: True"),
    (lambda a: a.check(*ENDS, path=Path("/x")), "path must be a str, not PosixPath: PosixPath('/x')"),  # type: ignore[arg-type]
    (lambda a: a.check(*ENDS, headers="x=1"), "headers must be a mapping, not str: 'x=1'"),  # type: ignore[arg-type]
    (lambda a: a.check(*ENDS, token=b"secret"), "token must be a str, not bytes"),  # type: ignore[arg-type]
    (lambda a: a.check(*ENDS, prot=80), "check() has no parameter prot"),  # type: ignore[call-arg]
    (lambda a: a.check("anonymous", 80), "a str, not int: 80"),  # type: ignore[arg-type]
    (lambda a: a.check("anonymous"), "missing 1 required positional argument: 'to'"),  # type: ignore[call-arg]
    (lambda a: a.explain("anonymous"), "explain() needs a destination: to"),  # type: ignore[call-overload]
    (lambda a: a.explain(*ENDS, port="80"), "port must be an int, not str: '80'"),  # type: ignore[call-overload]
    (lambda a: a.decide("sa:a/b"), "question must be a Question, not str: 'sa:a/b'"),  # type: ignore[arg-type]
    (lambda a: a.decide_all(["sa:a/b"]), "question must be a Question, not str: 'sa:a/b'"),  # type: ignore[list-item]
    (lambda a: a.prepare(None), "question must be a Question, not NoneType: None"),  # type: ignore[arg-type]
    (lambda a: a.decide(Question.of(*ENDS, port="80")), "port must be an int, not str: '80'"),  # type: ignore[arg-type]
    (lambda a: a.graph(port="80"), "port must be an int, not str: '80'"),  # type: ignore[arg-type]
    (lambda a: a.graph(sources=[3]), "sources must be a str or an iterable of str, not list: [3]"),  # type: ignore[list-item]
    (lambda a: a.describe("pod", 3), "name must be a str, not int: 3"),  # type: ignore[arg-type]
    (lambda a: a.get("pods", None), "names must be a str, not NoneType: None"),  # type: ignore[arg-type]
    (lambda a: a.diff("old"), "new must be an Authority, not str: 'old'"),  # type: ignore[arg-type]
    (lambda a: a.convert(None), "to must be a str, not NoneType: None"),  # type: ignore[arg-type]
    (lambda _: eastgate.load(io.StringIO(POLICY)), "paths must be a str or a path, not StringIO: <_io.StringIO"),  # type: ignore[arg-type]
    (lambda _: eastgate.load(["a", "b"]), "paths must be a str or a path, not list: ['a', 'b']"),  # type: ignore[arg-type]
    (lambda _: eastgate.load("a", unread="warn"), "unread must be a Handling, not str: 'warn'"),  # type: ignore[arg-type]
    (lambda _: eastgate.load("a", settings={}), "settings must be a Settings, not dict: {}"),  # type: ignore[arg-type]
    (lambda _: eastgate.from_text(Path("a")), "text must be a str, not PosixPath: PosixPath('a')"),  # type: ignore[arg-type]
    (lambda _: eastgate.from_objects("kind: Pod"), "objects must be an iterable of mapping, not str: 'kind: Pod'"),  # type: ignore[arg-type]
    (lambda _: eastgate.from_objects(["Pod"]), "objects must be an iterable of mapping, not list: ['Pod']"),  # type: ignore[list-item]
    (lambda _: eastgate.connect(3), "context must be a str, not int: 3"),  # type: ignore[arg-type]
    (lambda _: eastgate.test(3), "paths must be a str or a path, not int: 3"),  # type: ignore[arg-type]
    (lambda _: eastgate.crds(["Policy"]), "kinds must be a str, not list: ['Policy']"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_a_wrong_type_is_refused_at_the_call(call: Call, message: str, authority: eastgate.Authority) -> None:
    for _ in range(2):  # a checked value is not checked again
        with pytest.raises(TypeError) as refused:
            call(authority)
        assert message in str(refused.value)
        authority.check("sa:shop/web", "pod:shop/cart", port=80, headers={"x": "1"})


def test_an_invalid_path_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"^paths: expected files and folders, got StringIO$"):
        read_manifests([io.StringIO(POLICY)])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"^paths: expected files and folders, got StringIO$"):
        read_manifests(io.StringIO(POLICY))


# A cluster


def test_a_cluster_that_is_not_there_is_an_error_in_a_loop_too(tmp_path: Path) -> None:
    with pytest.raises(eastgate.ManifestError, match="the cluster cannot be read"):
        eastgate.connect(kubeconfig=tmp_path / "none")

    async def in_a_notebook() -> None:
        with pytest.raises(eastgate.ManifestError, match="the cluster cannot be read"):
            eastgate.connect(kubeconfig=tmp_path / "none")

    asyncio.run(in_a_notebook())
