"""The public Python API: sorted, lazily imported, closed over its own types, and its documented examples run."""

from __future__ import annotations

import ast
import builtins
import inspect
import io
import json
import pickle
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import eastgate
from eastgate import (
    ANONYMOUS,
    Address,
    AuthConfig,
    Backend,
    CertificateName,
    Decision,
    Gateway,
    Host,
    Pod,
    Question,
    QuestionError,
    Refusal,
    Reply,
    Route,
    Service,
    ServiceAccount,
    SpiffeId,
    Verdict,
)
from eastgate import cluster as world
from eastgate import ir as policy
from eastgate.authority.questions.values import path_values
from eastgate.cluster.ends import Destination, Source, parse_destination, parse_source
from eastgate.dialects import DIALECTS
from eastgate.ir.attributes import PATH, SENT_PATH, TARGET, URL_PATH
from eastgate.ir.paths import comparable_path, handed_path, is_respelled, sent_path

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "examples" / "shop"


# Names


def test_all_is_sorted_and_complete() -> None:
    assert eastgate.__all__ == sorted(eastgate.__all__)
    for name in eastgate.__all__:
        assert hasattr(eastgate, name)


def test_what_the_command_line_does_has_a_public_name() -> None:
    assert [name for name in eastgate.__all__ if name[0].islower()] == [
        "compare",
        "convert_manifests",
        "describe",
        "explain",
        "from_objects",
        "from_text",
        "list_objects",
        "load",
        "make_crds",
        "reach_graph",
        "read_manifests",
        "run_lint",
        "run_tables",
    ]


def test_the_page_of_the_api_names_all_that_there_is() -> None:
    page = (ROOT / "docs" / "python-api.md").read_text(encoding="utf-8")
    missing = [name for name in eastgate.__all__ if name != "__version__" and not re.search(rf"\b{name}\b", page)]
    assert missing == []


def test_importing_the_package_imports_nothing_of_it() -> None:
    tree = ast.parse((ROOT / "src" / "eastgate" / "__init__.py").read_text(encoding="utf-8"))
    imported = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert imported == ["importlib", "typing", "eastgate._version"]


def test_type_checkers_and_what_runs_agree_on_the_names() -> None:
    tree = ast.parse((ROOT / "src" / "eastgate" / "__init__.py").read_text(encoding="utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    aliases = {alias.asname: f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    del aliases[None]  # of the lines with a star
    del aliases["Settings"]  # defined in `settings`, and imported from `dialects`, which brings sections
    modules = {name: f"eastgate.{module}.{name}" for name, module in eastgate._MODULES.items() if name != "Settings"}
    assert aliases == modules
    brought = {dialect.settings.__module__ for dialect in DIALECTS if dialect.settings is not None}
    assert {node.module for node in imports if node.names[0].name == "*"} == brought


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    for name in ("Nothing", "nothing", "_nothing"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(eastgate, name)


# Types: whatever goes in or comes out is exported, or an object of the world or of the IR, which have packages

EXPORTED = {*eastgate.__all__, *policy.__all__, *world.__all__, "Attribute", "Unknown"}
ALIASES = {"Headers", "Networks", "Line", "OnEvent", "_Path", "Key"}  # of builtin, exported and joserfc's types
PLAIN = {*dir(builtins), *ALIASES, "Iterable", "Mapping", "Sequence", "Iterator", "Callable", "Collection", "PathLike"}
PLAIN |= {"Destination", "Source", "Unpack", "RequestParts"}  # of the exported ends, and of keywords
PLAIN |= {"Path", "Self", "BinaryIO", "TracebackType", "ClassVar", "SSLContext", "ForwardRef", "timedelta", "S"}
CONSTRUCTED = {"Authority", "Question", "Settings", "LocalMesh", "MeshOptions", "KnownKeys", "DiscoveredKeys"}
INTERNAL = {
    "Authority": {
        "apply",
        "arrivals",
        "arrive",
        "decide_connection",
        "decide_widened",
        "enforced_live",
        "imagining",
        "points_changed",
        "programs",
    },
    "Arrival": {"entry"},
    "Document": {"node", "data", "origin"},
    "ImaginedPod": {"of_caller"},
    "LocalMesh": {"apply", "emit", "replace", "sites"},
    "MeshOptions": {"lifetimes", "source", "tokens", "__init__"},
    "SocketAddress": {"to_plain"},
    "Table": {"cluster", "objects", "statement"},
}


def named_in(annotation: object) -> set[str]:
    """The names of types in an annotation; of `module.Type` the last."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "object")
    nodes = list(ast.walk(ast.parse(text, mode="eval")))
    modules = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    names = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in modules}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def annotations_of(name: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    value = getattr(eastgate, name)
    if inspect.isfunction(value):
        yield name, value.__annotations__
    if not inspect.isclass(value):
        return
    for cls in value.__mro__:
        if not cls.__module__.startswith("eastgate"):
            continue
        for field, annotation in vars(cls).get("__annotations__", {}).items():
            yield field, {field: annotation}
        for member, found in vars(cls).items():
            function = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
            if inspect.isfunction(function):
                yield member, function.__annotations__


@pytest.mark.parametrize("name", eastgate.__all__)
def test_annotations_name_only_exported_types(name: str) -> None:
    for member, annotated in annotations_of(name):
        if member in INTERNAL.get(name, ()) or (member.startswith("_") and member != "__init__"):
            continue
        if member == "__init__" and name not in CONSTRUCTED:
            continue
        for part, annotation in annotated.items():
            assert named_in(annotation) <= EXPORTED | PLAIN, f"{name}.{member}: {part}"


# Questions

ENDS = [
    (ServiceAccount("shop", "web"), "sa:shop/web"),
    (Pod("shop", "cart"), "pod:shop/cart"),
    (SpiffeId("spiffe://td/x"), "spiffe://td/x"),
    (CertificateName("a.example"), "id:a.example"),
    (Address("10.0.0.1"), "ip:10.0.0.1"),
    (ANONYMOUS, "anonymous"),
]
DESTINATIONS = [
    (Pod("shop", "cart"), "pod:shop/cart"),
    (Service("shop", "cart"), "service:shop/cart"),
    (Gateway("shop", "g"), "gateway:shop/g"),
    (Route("shop", "r"), "route:shop/r"),
    (Backend("shop", "b"), "backend:shop/b"),
    (AuthConfig("shop", "a"), "authconfig:shop/a"),
    (Host("a.example:80"), "host:a.example:80"),
]


@pytest.mark.parametrize(("end", "words"), ENDS)
def test_sources_are_read_from_words(end: Source, words: str) -> None:
    assert parse_source(words) == end
    assert str(end) == words
    assert type(pickle.loads(pickle.dumps(end))) is type(end)  # noqa: S301 - our own


@pytest.mark.parametrize(("end", "words"), DESTINATIONS)
def test_destinations_are_read_from_words(end: Destination, words: str) -> None:
    assert parse_destination(words) == end
    assert str(end) == words


def test_a_name_that_is_none_is_refused_in_either_form() -> None:
    authority = eastgate.load(SHOP / "manifests")
    for source in ("sa:Shop/web", ServiceAccount("Shop", "web"), ServiceAccount("shop/x", "web")):
        with pytest.raises(QuestionError):
            authority.decide(Question.of(source, Pod("shop", "cart"), port=8080))


@given(st.text("/a-_~.%2F5?#;A@é", max_size=8).map("/".__add__))
def test_a_path_that_is_plain_is_read_as_any_other(path: str) -> None:
    values = path_values(path)
    assert values[PATH] == comparable_path(path)
    assert values[SENT_PATH] == sent_path(path)
    assert values[URL_PATH] == handed_path(path)
    assert str(values[TARGET]).startswith(handed_path(path))
    assert len(values) == 4 or is_respelled(handed_path(path)) or "?" in path


# Decisions


@pytest.fixture(scope="module")
def authority() -> eastgate.Authority:
    return eastgate.load(SHOP / "manifests")


ALLOWED = Question.of(ServiceAccount("shop", "web"), Pod("shop", "cart"), port=8080)
DENIED = Question.of(ANONYMOUS, Pod("shop", "cart"), port=8080)


def test_verdicts_and_refusals_are_enums_that_compare_as_before(authority: eastgate.Authority) -> None:
    allowed, denied = authority.decide(ALLOWED), authority.decide(DENIED)
    assert allowed.verdict == "allow"
    assert allowed.verdict is Verdict.ALLOW
    assert allowed.refusal is None
    assert denied.verdict is Verdict.DENY
    assert denied.refusal is Refusal.CLOSED
    assert denied.refusal == denied.status == 0
    assert json.loads(json.dumps({"verdict": denied.verdict, "refusal": denied.refusal})) == {
        "verdict": "deny",
        "refusal": 0,
    }
    assert [str(reply) for reply in Reply] == ["allow", "deny", "error"]


def test_a_default_has_a_location_and_no_span(authority: eastgate.Authority) -> None:
    denied = authority.decide(DENIED)
    assert denied.span is None
    assert denied.location == "a default"
    assert authority.decide(ALLOWED).location.endswith("policies.yaml:11")


def told(decision: Decision) -> object:
    return {**decision.to_json(), "question": str(decision.question)}


def test_prepared_and_bulk_answers_are_those_of_single_questions(authority: eastgate.Authority) -> None:
    questions = [
        ALLOWED,
        DENIED,
        Question.of("sa:shop/web", "service:shop/cart"),
        Question.of("sa:shop/web", "pod:shop/payments", port=8443, method="GET", path="/x"),
        Question.of("pod:shop/web", "pod:shop/cart"),
    ]
    single = [told(authority.decide(question)) for question in questions]
    prepared = [authority.prepare(question) for question in questions]
    for _ in range(2):
        assert [told(question.decide()) for question in prepared] == single
    bulk = authority.decide_all([*questions, *prepared])
    assert [told(answer) for answer in bulk if isinstance(answer, Decision)] == [*single, *single]


def test_a_bulk_call_says_in_its_place_what_cannot_be_decided(authority: eastgate.Authority) -> None:
    first, second, third = authority.decide_all([ALLOWED, Question.of("sa:shop/web", "pod:shop/nobody"), DENIED])
    assert isinstance(first, Decision)
    assert isinstance(second, QuestionError)
    assert isinstance(third, Decision)


def test_a_reason_needs_no_trace_where_everything_is_known(
    authority: eastgate.Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("it was decided again")

    decisions = authority.decide(ALLOWED), authority.decide(DENIED)
    monkeypatch.setattr("eastgate.authority.decisions.trace", refuse)
    assert [decision.reason for decision in decisions] == [
        "AuthorizationPolicy/shop/cart-from-web rule 0 allows it",
        "no rule allows it at shop/cart",
    ]


# What commands do


def test_commands_are_functions(authority: eastgate.Authority) -> None:
    assert {finding.code.id for finding in eastgate.run_lint(authority)} >= {"EG6006"}
    (described,) = eastgate.describe(authority, "pod", "cart", "shop")
    assert "spiffe://cluster.local/ns/shop/sa/cart" in "\n".join(described.lines())
    assert [row.name for row in eastgate.list_objects(authority, "workloads", "shop").rows] == [
        "cart",
        "payments",
        "web",
    ]
    run = eastgate.run_tables([SHOP])
    assert run.passed > 10
    assert run.failed == 0
    assert [crd["metadata"] for crd in eastgate.make_crds(["ClusterAuthorizationPolicy"])]
    conversion = eastgate.convert_manifests([SHOP / "manifests"], "istio")
    assert {manifest["kind"] for manifest in conversion.manifests} >= {"AuthorizationPolicy"}


def test_errors_carry_all_diagnostics(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("kind: Pod\n---\napiVersion: v1\nkind: Pod\nmetadata: {}\n")
    with pytest.raises(eastgate.ManifestError) as caught:
        eastgate.load(tmp_path)
    assert len(caught.value.diagnostics) == 3
    assert "error[EG" in str(caught.value)


# Manifests without files, and one path

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
ASKED = eastgate.Question.of("anonymous", "pod:shop/cart", port=80)


def test_a_decision_is_true_where_it_allows() -> None:
    authority = eastgate.from_text(POLICY)
    assert not authority.decide(ASKED)
    authority.update(remove=["NetworkPolicy/shop/closed"])
    assert authority.decide(ASKED)


def test_manifests_may_be_a_text_or_objects_and_one_path_may_stand_for_several(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(POLICY)
    objects = [*yaml.safe_load_all(POLICY)]
    authorities = [
        eastgate.load(str(tmp_path)),
        eastgate.from_text(POLICY),
        eastgate.from_objects(objects),
        eastgate.from_objects(iter(objects)),
        eastgate.Authority(eastgate.read_manifests(str(tmp_path))),
        eastgate.Authority(eastgate.read_manifests(tmp_path)),
    ]
    assert [authority.decide(ASKED).policy for authority in authorities] == [None] * 6
    assert [[str(policy.ref) for policy in each.policies] for each in authorities] == [
        ["NetworkPolicy/shop/closed"]
    ] * 6


def test_what_is_no_path_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"^paths: expected files and folders, got StringIO$"):
        eastgate.read_manifests([io.StringIO(POLICY)])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"^paths: expected files and folders, got StringIO$"):
        eastgate.read_manifests(io.StringIO(POLICY))


def test_errors_of_a_text_have_lines() -> None:
    with pytest.raises(eastgate.ManifestError) as failed:
        eastgate.from_text(POLICY.replace("podSelector", "podSelectr"))
    assert [error.span.line for error in failed.value.diagnostics if error.span is not None] == [10]
