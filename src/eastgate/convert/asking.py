"""Authorities with normalized auth schemes, so that schemes in different kinds of policies can be compared.

An AuthPolicy of 2022 selects requests by rules. An AuthPolicy of today selects them by CEL predicates that the filter
of a gateway evaluates. Here both become rules, if a predicate has an exact equivalent as a rule. The name of a scheme
depends on its content and not on its policy. Questions are answered by the original authority.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import Question
from eastgate.authority.reading import Manifests
from eastgate.cluster.unread import Handling
from eastgate.convert.authorino import needs_secrets
from eastgate.convert.authorino_checks import without_host_check, without_token_checks
from eastgate.convert.gateway_conditions import (
    ANY_PATH,
    HOST_END,
    HOST_START,
    PATH_END,
    PATH_START,
    is_plain_path,
    predicate_text,
    reads_shared_only,
)
from eastgate.dialects import Policy
from eastgate.dialects.cel import GATEWAY_ROOTS, CelProblem, compile_document_cel
from eastgate.dialects.cel.syntax import Call, CreateList, Literal, Local, Node, Select
from eastgate.dialects.kuadrant.authorino.authorizer import SchemeAuthorizer
from eastgate.dialects.kuadrant.authorino.model import (
    All,
    Authorization,
    CelExpression,
    CelPredicate,
    Condition,
    Identity,
    LiteralValue,
    Metadata,
    PlainResponse,
    Response,
    Scheme,
)
from eastgate.dialects.kuadrant.hosts import host_problem, matches
from eastgate.ir import (
    ALWAYS,
    Ask,
    AskAll,
    Attachment,
    Deny,
    Is,
    Layer,
    Not,
    OneOf,
    Or,
    Predicate,
    Prefix,
    Rule,
    Stage,
    Stances,
    Suffix,
    all_of,
    any_of,
)
from eastgate.ir.attributes import METHOD, PATH, TARGET
from eastgate.ir.paths import any_path
from eastgate.reach.alike import are_alike

_DENIED = "hosts without a scheme"
_Entry = TypeVar("_Entry", Identity, Metadata, Authorization, Response)


class SchemeNames:
    """Names of schemes. Schemes with the same content have the same name."""

    def __init__(self) -> None:
        self._known: list[tuple[Scheme, str]] = []

    def name(self, scheme: Scheme, wanted: str) -> str:
        """Return the name of a scheme: the name of the first scheme with the same content, or else a new name."""
        for known, name in self._known:
            if are_alike(known, scheme):
                return name
        taken = {name for _, name in self._known}
        name, number = wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted} ({number})"
        self._known.append((scheme, name))
        return name


class AskingAuthority(Authority):
    """An authority whose layers ask normalized schemes."""

    def __init__(self, manifests: Manifests, names: SchemeNames) -> None:
        self._names = names
        super().__init__(manifests, unread=Handling.IGNORE)
        self._as_read = Authority(manifests, unread=Handling.IGNORE)

    def decide(self, question: Question) -> Decision:
        """Decide with the original policies."""
        return self._as_read.decide(question)

    def _assemble(self, attached: Sequence[Attachment[Policy]], stances: Stances) -> list[Layer]:
        return [self._normalized(layer) for layer in super()._assemble(attached, stances)]

    def _normalized(self, layer: Layer) -> Layer:
        if not any(isinstance(ask.evaluator, SchemeAuthorizer) for ask in layer.asks):
            return layer
        stages: list[Stage] = []
        for stage in layer.otherwise.stages:
            if isinstance(stage, AskAll):
                asked = [part for ask in stage.asks for part in self._parts(ask)]
                denied = tuple(part for part in asked if isinstance(part, Rule))
                stages += [Deny(_DENIED, denied)] if denied else []
                stages.append(replace(stage, asks=tuple(part for part in asked if isinstance(part, Ask))))
            else:
                stages.append(stage)
        return replace(layer, otherwise=replace(layer.otherwise, stages=tuple(stages)))

    def _parts(self, ask: Ask) -> Iterator[Ask | Rule]:
        """Yield the normalized question, and the requests that its scheme denies because of their host."""
        if not isinstance(ask.evaluator, SchemeAuthorizer):
            yield ask
            return
        scheme, when = ask.evaluator.scheme, ask.rule.when
        lifted, left = _exact_predicates(scheme.when)
        scheme, when = replace(scheme, when=left), all_of([when, lifted])
        without, predicate = without_host_check(scheme)
        hosts = _lower_condition(CelPredicate(predicate)) if predicate is not None and left is None else None
        if hosts is not None:
            yield replace(ask.rule, when=all_of([when, Not(hosts)]))
            scheme, when = without, all_of([when, hosts])
        scheme = _normalize(scheme)
        evaluator = SchemeAuthorizer(scheme, ask.evaluator.services)
        yield Ask(replace(ask.rule, when=when), self._names.name(scheme, ask.authorizer), evaluator, ask.fail_open)


# Schemes


def _normalize(scheme: Scheme) -> Scheme:
    """Return a scheme with its entries in the order of evaluation, without the fields that affect no request."""
    scheme = without_token_checks(scheme)
    return replace(
        scheme,
        namespace=scheme.namespace if needs_secrets(scheme) else "",
        hosts=(),
        identities=tuple(replace(each, priority=0) for each in _in_order(scheme.identities)),
        metadata=tuple(replace(each, priority=0) for each in _in_order(scheme.metadata)),
        authorizations=tuple(replace(each, priority=0) for each in _in_order(scheme.authorizations)),
        responses=tuple(map(_response, sorted(_in_order(scheme.responses), key=lambda each: not each.in_header))),
    )


def _in_order(entries: Sequence[_Entry]) -> list[_Entry]:
    return sorted(entries, key=lambda each: each.priority)


def _response(response: Response) -> Response:
    """Return a response in which each constant expression is a literal."""
    response = replace(response, priority=0)
    content = response.content
    if isinstance(content, PlainResponse) and isinstance(content.value, CelExpression):
        try:
            return replace(response, content=PlainResponse(LiteralValue(json.loads(content.value.text))))
        except ValueError:
            return response
    return response


# Conditions


def _exact_predicates(when: Condition | None) -> tuple[Predicate, Condition | None]:
    """Return the parts of a `when` that predicates express exactly, and the other parts."""
    if not isinstance(when, All):
        return ALWAYS, when
    lowered = [(_lower_condition(part), part) for part in when.parts]
    left = tuple(_without_evaluator(part) for predicate, part in lowered if predicate is None)
    return all_of([predicate for predicate, _ in lowered if predicate is not None]), All(left) if left else None


def _without_evaluator(condition: Condition) -> Condition:
    """Return a condition as CEL without its evaluator, if the gateway and the auth scheme see the same values."""
    text = predicate_text(condition)
    return CelPredicate(text) if text is not None else condition


def _lower_condition(condition: Condition) -> Predicate | None:
    match _without_evaluator(condition):
        case CelPredicate(text, at_gateway=True):
            compiled = compile_document_cel(text, GATEWAY_ROOTS)
        case CelPredicate(text) if reads_shared_only(text):
            compiled = compile_document_cel(text)
        case _:
            return None
    return None if isinstance(compiled, CelProblem) else _lower(compiled.tree)


def _lower(node: Node) -> Predicate | None:
    """Lower an expression over attributes that every request has, so that it never errs."""
    match node:
        case Call("_&&_" | "_||_" as joint, parts):
            lowered = [_lower(part) for part in parts]
            known = [part for part in lowered if part is not None]
            if len(known) < len(lowered):
                return None
            return all_of(known) if joint == "_&&_" else any_of(known)
        case Call("_==_", (Select(Local("request"), name), Literal(str(text)))):
            return _compare(name, [text])
        case Call("_!=_", (Select(Local("request"), name), Literal(str(text)))):
            same = _compare(name, [text])
            return None if same is None else Not(same)
        case Call("@in", (Select(Local("request"), name), CreateList(items))):
            texts = [item.value for item in items if isinstance(item, Literal) and isinstance(item.value, str)]
            return _compare(name, texts) if len(texts) == len(items) else None
        case Call("startsWith", (Select(Local("request"), "url_path"), Literal(str(text)))) if is_plain_path(
            f"{text}*"
        ):
            return Is(PATH, Prefix(text))
        case Call("endsWith", (Select(Local("request"), "url_path"), Literal(str(text)))) if is_plain_path(f"*{text}"):
            return Is(PATH, Suffix(text))
        case Call("matches", (Select(Local("request"), "host"), Literal(str(text)))):
            return _hosts(text)
        case Call("matches", (Select(Local("request"), "path"), Literal(str(text)))):
            return _paths(text)
        case _:
            return None


def _compare(name: str, texts: Sequence[str]) -> Predicate | None:
    if name == "method":
        return Is(METHOD, OneOf(frozenset(texts)))
    if name == "path":
        return Is(TARGET, OneOf(frozenset(texts)))
    if name == "url_path" and all(map(is_plain_path, texts)):
        return Is(PATH, OneOf(frozenset(texts)))
    return None


def _hosts(expression: str) -> Predicate | None:
    """Return ANY of the hosts, if an expression has the form that conversions write for hosts."""
    if not (expression.startswith(HOST_START) and expression.endswith(HOST_END)):
        return None
    names = expression.removeprefix(HOST_START).removesuffix(HOST_END).split("|")
    hosts = [name.replace("[.]", "\0").replace(".*", "*", 1).replace("\0", ".") for name in names]
    if any(host_problem(host) is not None for host in hosts):
        return None
    return Or(tuple(map(matches, hosts)))


def _paths(expression: str) -> Predicate | None:
    """Return ANY of the paths, if an expression has the form that conversions write for paths."""
    if not (expression.startswith(PATH_START) and expression.endswith(PATH_END)):
        return None
    names = expression.removeprefix(PATH_START).removesuffix(PATH_END).split("|")
    paths = [name.replace(ANY_PATH, "*", 1).replace("[.]", "\0") for name in names]
    if any("." in path for path in paths):
        return None
    paths = [path.replace("\0", ".") for path in paths]
    return any_path(paths) if all(map(is_plain_path, paths)) else None
