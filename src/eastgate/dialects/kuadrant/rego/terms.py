"""Parses bodies, their conditions, and terms."""

from __future__ import annotations

import json
from decimal import Decimal

from eastgate.dialects.kuadrant.rego.syntax import (
    Array,
    Assign,
    Body,
    Call,
    Collect,
    Every,
    Holds,
    Literal,
    Negated,
    ObjectOf,
    Ref,
    Scalar,
    SetOf,
    Some,
    SomeIn,
    Term,
    Unify,
    Var,
    With,
)
from eastgate.dialects.kuadrant.rego.tokens import (
    LATER,
    LEVELS,
    MAX_DEPTH,
    MAX_EXPONENT,
    RESERVED,
    Token,
    TokenReader,
)
from eastgate.dialects.kuadrant.rego.values import number


class TermParser(TokenReader):
    """Parses the parts of rules."""

    def __init__(self, tokens: tuple[Token, ...], version: int) -> None:
        super().__init__(tokens, version)
        self._depth = 0
        self._wildcards = 0

    # Bodies

    def _braces(self) -> Body:
        self._expect("{")
        body = self._body("}")
        self._expect("}")
        return body

    def _body(self, end: str) -> Body:
        literals: list[Literal] = []
        self._enter()
        while not self._is(end):
            if literals and self._skip(";") and self._is(end, ";"):
                raise self._problem(f"a condition must stand between `;` and {self._now.text!r}")
            if literals and not (self._now.fresh or self._tokens[self._at - 1].text == ";"):
                raise self._problem(f"{self._now.text!r} is not allowed here")
            literals.append(self._literal())
        self._depth -= 1
        if not literals:
            raise self._problem("a body has at least one condition")
        return tuple(literals)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._problem(f"brackets are nested deeper than {MAX_DEPTH} levels")

    def _literal(self) -> Literal:
        if self._skip("not"):
            negated = self._plain_literal()
            if not isinstance(negated, Holds | Unify):
                raise self._problem("`not` takes a term or a comparison")
            literal: Literal = Negated(negated)
        else:
            literal = self._plain_literal()
        changes: list[tuple[tuple[str, ...], Term]] = []
        while self._skip("with"):
            changes.append(self._change())
        if not changes:
            return literal
        if isinstance(literal, Some | SomeIn | Every):
            raise self._problem("`with` after `some` or `every` is not supported")
        return With(literal, tuple(changes))

    def _change(self) -> tuple[tuple[str, ...], Term]:
        path = [self._take().text]
        while self._skip("."):
            path.append(self._take().text)
        if path[0] != "input":
            raise self._problem("`with` can change the input, and nothing else")
        self._expect("as")
        return tuple(path[1:]), self._term()

    def _plain_literal(self) -> Literal:
        if self._is("some"):
            return self._parse_some()
        if self._skip_later("every"):
            return self._every()
        left = self._term()
        if self._skip(":="):
            return Assign(left, self._term())
        if self._skip("="):
            return Unify(left, self._term())
        return Holds(left)

    def _parse_some(self) -> Literal:
        self._expect("some")
        first = self._level(1)
        second = self._level(1) if self._skip(",") else None
        if self._skip_later("in"):
            source = self._term()
            return SomeIn(None, first, source) if second is None else SomeIn(first, second, source)
        names = [first, *([] if second is None else [second])]
        while self._skip(","):
            names.append(self._level(1))
        if not all(isinstance(name, Var) for name in names):
            raise self._problem("`some` takes variables")
        return Some(tuple(name.name for name in names if isinstance(name, Var)))

    def _every(self) -> Literal:
        first = Var(self._name_or_wildcard())
        second = Var(self._name_or_wildcard()) if self._skip(",") else None
        self._expect("in")
        source = self._level(1)
        body = self._braces()
        return Every(None, first, source, body) if second is None else Every(first, second, source, body)

    def _name_or_wildcard(self) -> str:
        name = self._name()
        return self._wildcard() if name == "_" else name

    def _wildcard(self) -> str:
        self._wildcards += 1
        return f"_{self._wildcards}"

    # Terms

    def _term(self, first: Term | None = None) -> Term:
        """Parse a term: operators from the loosest, `in`, on. `first`: its first operand, which has been read."""
        self._enter()
        term = self._level(0, first)
        if self._skip_later("in"):
            term = Call("internal.member_2", (term, self._level(0)))
        self._depth -= 1
        return term

    def _level(self, level: int, first: Term | None = None) -> Term:
        if level == len(LEVELS):
            return self._unary() if first is None else first
        term = self._level(level + 1, first)
        while self._now.kind == "sign" and self._now.text in LEVELS[level]:
            term = Call(LEVELS[level][self._take().text], (term, self._level(level + 1)))
        return term

    def _unary(self) -> Term:
        if self._is("-"):
            self._take()
            if self._now.kind != "number":
                raise self._problem("only a number can be negative")
            return self._number(f"-{self._take().text}")
        return self._reference(self._operand())

    def _reference(self, head: Term) -> Term:
        path: list[Term] = []
        while not self._now.spaced and self._is(".", "[", "("):
            if self._skip("."):
                path.append(Scalar(self._field(self._tokens[self._at])))
            elif self._skip("["):
                path.append(self._term())
                self._expect("]")
            else:
                head, path = Call(self._called(head, path), self._arguments()), []
        if path and isinstance(head, Scalar):
            raise self._problem("a number, a text, true, false or null has no members")
        return Ref(head, tuple(path)) if path else head

    def _is_keyword(self, name: str) -> bool:
        return name in self._keywords or (name in RESERVED and name not in LATER)

    def _field(self, token: Token) -> str:
        if token.kind != "name" or token.spaced or self._is_keyword(token.text):
            raise self._problem(f"{token.text!r} is no name of a field")
        return self._take().text

    def _called(self, head: Term, path: list[Term]) -> str:
        if not isinstance(head, Var) or not all(
            isinstance(step, Scalar) and isinstance(step.value, str) for step in path
        ):
            raise self._problem("only a function can be called")
        return ".".join([head.name, *(str(step.value) for step in path if isinstance(step, Scalar))])

    def _arguments(self) -> tuple[Term, ...]:
        self._expect("(")
        return tuple(self._terms(")"))

    def _terms(self, end: str) -> list[Term]:
        terms: list[Term] = []
        while not self._skip(end):
            if terms:
                self._expect(",")
                if self._skip(end):
                    break
            terms.append(self._term())
        return terms

    def _operand(self) -> Term:
        token = self._take()
        match token.kind, token.text:
            case "number", text:
                return self._number(text)
            case (("text" | "raw"), _):
                return Scalar(self._text(token))
            case "name", "true" | "false":
                return Scalar(token.text == "true")
            case "name", "null":
                return Scalar(None)
            case "name", "_":
                return Var(self._wildcard())
            case "name", "set" if self._is("(") and self._tokens[self._at + 1].text == ")":
                self._at += 2
                return SetOf(())
            case "name", text if text not in RESERVED:
                return Var(text)
            case "sign", "(":
                term = self._term()
                self._expect(")")
                return term
            case "sign", "[":
                return self._array()
            case "sign", "{":
                return self._braced()
        self._at -= 1
        if token.kind == "end":
            raise self._problem("the module ends before a rule does")
        raise self._problem(f"{token.text!r} is not allowed here")

    def _number(self, text: str) -> Scalar:
        try:
            if abs(Decimal(text).adjusted()) > MAX_EXPONENT:
                raise ValueError(text)
            value = number(Decimal(text))
        except (ArithmeticError, ValueError):
            raise self._problem(f"{text} is no number") from None
        return Scalar(value, odd=isinstance(value, int) and not text.lstrip("-").isdigit())

    def _text(self, token: Token) -> str:
        if token.kind == "raw":
            return token.text[1:-1]
        try:
            text = str(json.loads(token.text))
            text.encode()  # half of a surrogate pair is no character
            return text
        except ValueError:
            raise self._problem(f"{token.text} is no text") from None

    def _array(self) -> Term:
        """Parse an array, or a comprehension.

        The head of a comprehension is an operand, because `|` is an operator too.
        """
        self._enter()
        if self._skip("]"):
            self._depth -= 1
            return Array(())
        first = self._unary()
        if self._skip("|"):
            return Collect("[", None, first, self._rest("]"))
        return Array(tuple(self._items(self._term(first), "]")))

    def _braced(self) -> Term:
        """Parse an object, a set, or a comprehension of one of them. `{}` is an object."""
        self._enter()
        if self._skip("}"):
            self._depth -= 1
            return ObjectOf(())
        first = self._unary()
        if self._skip("|"):
            return Collect("{", None, first, self._rest("}"))
        key = self._term(first)
        if not self._skip(":"):
            return SetOf(tuple(self._items(key, "}")))
        first = self._unary()
        if self._skip("|"):
            return Collect(":", key, first, self._rest("}"))
        pairs = [(key, self._term(first))]
        while not self._skip("}"):
            self._expect(",")
            if self._skip("}"):
                break
            key = self._term()
            self._expect(":")
            pairs.append((key, self._term()))
        self._depth -= 1
        return ObjectOf(tuple(pairs))

    def _rest(self, end: str) -> Body:
        """Parse the body of a comprehension."""
        body = self._body(end)
        self._expect(end)
        self._depth -= 1
        return body

    def _items(self, first: Term, end: str) -> list[Term]:
        items = [first]
        while not self._skip(end):
            self._expect(",")
            if self._skip(end):
                break
            items.append(self._term())
        self._depth -= 1
        return items
