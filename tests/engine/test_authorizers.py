"""Authorizers of Eastgate: asked once, only if a rule selects the request, never about an ambiguous path."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from eastgate.authority.questions.values import path_values
from eastgate.engine import reference
from eastgate.engine.compiled import compile_layers
from eastgate.ir import (
    Ask,
    AskAll,
    Chain,
    Is,
    Known,
    Layer,
    OneOf,
    Origin,
    Placement,
    RawRequest,
    Request,
    Rule,
    Ruling,
    Site,
    ask_authorizers,
    authorizers_in,
)
from eastgate.ir.attributes import IDENTITY, METHOD, PORT, Attribute

RIGHT = "right"


@dataclass(slots=True)
class Toy:
    """An authorizer that allows one token, and counts its requests."""

    looks_at_path: bool = True
    asked: list[str | None] = field(default_factory=list)

    def refuse_path(self, request: Request) -> Ruling | None:
        """Refuse a path that is ambiguous or not canonical."""
        refused = self.looks_at_path and (request.refused_path or request.respelled_path)
        return Ruling(False, 400, "the path") if refused else None

    def answer(self, request: Request, raw: RawRequest) -> Ruling:
        """Allow the right token."""
        assert request.get(PORT) == 80
        self.asked.append(raw.token)
        return Ruling(raw.token == RIGHT, 401, "the token is wrong")


def layer_of(toy: Toy) -> Layer:
    rule = Rule(Is(METHOD, OneOf(frozenset({"GET"}))), Origin(None, 0))
    return Layer(Placement(Site.ROUTE, "auth"), Chain((AskAll("ask", (Ask(rule, "toy", toy),)),)))


def outcome(toy: Toy, token: str, method: str = "GET", path: str = "/") -> tuple[bool, int]:
    layer = layer_of(toy)
    values: dict[Attribute, Known] = {IDENTITY: "a", PORT: 80, METHOD: method, **path_values(path)}
    asked = ask_authorizers(Request(values), RawRequest(token=token), authorizers_in([layer]))
    program = compile_layers([layer])
    decided = program.outcome(program.decide(asked))
    assert decided == reference.decide([layer], asked)
    return decided.allowed, decided.status


@pytest.mark.parametrize(
    ("token", "method", "path", "expected", "asked"),
    [
        (RIGHT, "GET", "/", (True, 200), 1),
        ("wrong", "GET", "/", (False, 401), 1),
        ("wrong", "POST", "/", (True, 200), 0),
        (RIGHT, "GET", "/a%2fb", (False, 400), 0),
        (RIGHT, "GET", "/a%40b", (False, 400), 0),
        (RIGHT, "GET", "/a@b", (True, 200), 1),
    ],
)
def test_the_answer_of_an_authorizer_is_the_outcome(
    token: str, method: str, path: str, expected: tuple[bool, int], asked: int
) -> None:
    toy = Toy()
    assert outcome(toy, token, method, path) == expected
    assert len(toy.asked) == asked


@pytest.mark.parametrize("path", ["/a%2fb", "/a%40b"])
def test_an_authorizer_that_reads_no_paths_is_asked_about_any_path(path: str) -> None:
    assert outcome(Toy(looks_at_path=False), RIGHT, path=path) == (True, 200)


def test_layers_without_authorizers_leave_a_request_as_it_is() -> None:
    request = Request({PORT: 80})
    assert ask_authorizers(request, RawRequest(), {}) is request
