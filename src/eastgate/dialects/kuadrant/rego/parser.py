"""Parses a module: Rego as it was before version 1, with its later keywords."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.rego.syntax import (
    Array,
    Assign,
    Body,
    Call,
    Collect,
    Every,
    Holds,
    Literal,
    Module,
    Negated,
    ObjectOf,
    Ref,
    RegoRule,
    Scalar,
    SetOf,
    Some,
    SomeIn,
    Term,
    Unify,
    UnsupportedModule,
    Var,
    With,
)
from eastgate.dialects.kuadrant.rego.values import number

MAX_DEPTH: Final = 64
MAX_EXPONENT: Final = 400
_TOKEN: Final = regex(
    r"""(?P<space>[ \t\r]+|\#[^\n]*)|(?P<newline>\n)|(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<raw>`[^`]*`)
    |(?P<number>(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)
    |(?P<sign>:=|==|!=|<=|>=|[-=<>+*/%&|.,;:(){}\[\]])""",
    re.VERBOSE | re.ASCII,
)
_RESERVED: Final = frozenset(
    ("as", "default", "else", "false", "import", "not", "null", "package", "some", "true", "with", "every", "if", "in")
)
_LATER: Final = frozenset(("contains", "every", "if", "in"))  # keywords where the module imports them
_COMPARISONS: Final = {"==": "equal", "!=": "neq", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
_LEVELS: Final = (  # loosest first
    _COMPARISONS,
    {"|": "or"},
    {"&": "and"},
    {"+": "plus", "-": "minus"},
    {"*": "mul", "/": "div", "%": "rem"},
)
_OPENING: Final = ("(", "[", "{")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int
    spaced: bool  # white space stands before it
    fresh: bool  # it is the first of its line


def parse(module: str, version: int = 0) -> Module:
    """Parse a module without its `package` line. `version`: of the language, 0 or 1. Raises UnsupportedModule."""
    return _Parser(tuple(_tokens(module)), version).module()


def _tokens(module: str) -> Iterator[_Token]:
    at, line, spaced, fresh = 0, 1, True, True
    while at < len(module):
        match = _TOKEN.match(module, at)
        if match is None:
            raise UnsupportedModule(f"line {line}: {module[at]!r} cannot stand in a module")
        at = match.end()
        kind, text = str(match.lastgroup), match[0]
        if kind == "newline":
            line, spaced, fresh = line + 1, True, True
        elif kind == "space":
            spaced = True
        else:
            yield _Token(kind, text, line, spaced, fresh)
            line += text.count("\n")
            spaced = fresh = False
    yield _Token("end", "", line, True, True)


def _is_constant(term: Term) -> bool:
    match term:
        case Scalar() | Collect():
            return True
        case Array(items) | SetOf(items):
            return all(map(_is_constant, items))
        case ObjectOf(pairs):
            return all(_is_constant(part) for pair in pairs for part in pair)
    return False


class _Parser:
    def __init__(self, tokens: tuple[_Token, ...], version: int) -> None:
        self._tokens = tokens
        self._version = version
        self._keywords = _LATER if version else frozenset[str]()
        self._at = 0
        self._depth = 0
        self._wildcards = 0

    # Tokens

    @property
    def _now(self) -> _Token:
        return self._tokens[self._at]

    def _is(self, *texts: str) -> bool:
        return self._now.text in texts and self._now.kind in ("sign", "name")

    def _take(self) -> _Token:
        token = self._now
        self._at += 1
        return token

    def _skip(self, *texts: str) -> bool:
        if self._is(*texts):
            self._at += 1
            return True
        return False

    def _skip_later(self, keyword: str) -> bool:
        """Skip a keyword of version 1. Raises UnsupportedModule where nothing makes it one."""
        if self._is(keyword) and keyword not in self._keywords:
            raise self._problem(f"`{keyword}` needs `import future.keywords.{keyword}`, or version v1")
        return self._skip(keyword)

    def _expect(self, text: str) -> _Token:
        if not self._is(text):
            raise self._problem(f"{text!r} must stand here, not {self._now.text!r}")
        return self._take()

    def _problem(self, message: str) -> UnsupportedModule:
        return UnsupportedModule(f"line {self._now.line}: {message}")

    def _name(self) -> str:
        if self._now.kind != "name" or self._now.text in _RESERVED:
            raise self._problem(f"a name must stand here, not {self._now.text!r}")
        return self._take().text

    # Modules

    def module(self) -> Module:
        imports: dict[str, Ref] = {}
        rules: list[RegoRule] = []
        self._find_keywords()
        while self._now.kind != "end":
            if self._is("import"):
                self._import(imports)
            else:
                rules += self._rule()
            if not self._now.fresh:
                raise self._problem(f"{self._now.text!r} cannot stand here")
        return Module(tuple(rules), imports, self._version)

    def _find_keywords(self) -> None:
        """Learn what the module imports, wherever it does."""
        for at, token in enumerate(self._tokens):
            if token.kind == "name" and token.text == "import" and token.fresh:
                path = "".join(part.text for part in itertools.islice(self._tokens, at + 1, at + 6))
                if path.startswith("rego.v1"):
                    self._version, self._keywords = 1, _LATER
                elif path.startswith("future.keywords"):
                    keyword = self._tokens[at + 5].text if self._tokens[at + 4].text == "." else None
                    self._keywords |= _LATER if keyword is None else {keyword, *(["in"] if keyword == "every" else [])}

    def _import(self, imports: dict[str, Ref]) -> None:
        self._expect("import")
        head = self._take().text
        path: list[str] = []
        while self._skip("."):
            path.append(self._take().text)
        while self._is("[") and not self._now.spaced:
            self._take()
            path.append(str(self._text(self._take())))
            self._expect("]")
        given = self._name() if self._skip("as") else None
        alias = given or (path[-1] if path else head)
        if given is None and [head, *path] in (["rego", "v1"], ["future", "keywords"]):
            return
        if given is None and [head, *path[:1]] == ["future", "keywords"] and len(path) == 2 and path[1] in _LATER:
            return
        if head not in ("input", "data"):
            raise self._problem(f"an import begins with input, data, future.keywords or rego.v1, not {head!r}")
        if self._version and alias in imports:
            raise self._problem(f"there are two imports named {alias}")
        imports[alias] = Ref(Var(head), tuple(map(Scalar, path)))

    def _rule(self) -> list[RegoRule]:
        default = self._skip("default")
        name = self._name()
        if self._is("."):
            raise self._problem("a rule whose name has dots is not supported")
        arguments = key = value = None
        listed = False
        if self._is("(") and not self._now.spaced:
            self._take()
            arguments = tuple(self._terms(")"))
        elif self._is("[") and not self._now.spaced:
            self._take()
            key = self._term()
            self._expect("]")
            if self._is("[", "."):
                raise self._problem("a rule whose name has dots is not supported")
        elif listed := "contains" in self._keywords and self._skip("contains"):
            key = self._term()
        if self._skip("=", ":="):
            value = self._term()
        rule = RegoRule(name, arguments, key, value, (), default=default)
        if default:
            if value is None or key is not None or not _is_constant(value):
                raise self._problem("a default is written `default name = value`, with a value that is written out")
            return [rule]
        rules = self._bodies(rule, listed=listed)
        if key is not None and any(parsed.otherwise is not None for parsed in rules):
            raise self._problem("only a rule with one value can have an `else`")
        if self._version and any(parsed.is_set for parsed in rules) and not listed:
            raise self._problem("a part of a set is written `name contains value`")
        return [self._with_value(parsed) for parsed in rules]

    def _with_value(self, rule: RegoRule) -> RegoRule:
        """Return a rule with the value true, if it is no part of a set and has none."""
        rest = None if rule.otherwise is None else self._with_value(rule.otherwise)
        if rule.key is None and rule.value is None:
            return replace(rule, value=Scalar(True), otherwise=rest)
        return replace(rule, otherwise=rest)

    def _bodies(self, rule: RegoRule, *, listed: bool) -> list[RegoRule]:
        if self._skip_later("if"):
            if rule.key is not None and rule.value is None and not listed:  # `name[key] if` is an object's member
                rule = replace(rule, value=Scalar(True))
            body = self._braces() if self._is("{") and self._is_block() else (self._literal(),)
            return [replace(rule, body=body, otherwise=self._else(rule))]
        if not self._is("{"):
            if rule.value is None and rule.key is None:
                raise self._problem(f"the rule {rule.name} has neither a value nor a body")
            return [replace(rule, otherwise=self._else(rule))]
        self._check_body()
        rules = [replace(rule, body=self._braces(), otherwise=self._else(rule))]
        while self._is("{") and rules[-1].otherwise is None:
            rules.append(replace(rule, body=self._braces()))
        return rules

    def _check_body(self) -> None:
        if self._version:
            raise self._problem("`if` must stand before a body")

    def _is_block(self) -> bool:
        """Return whether braces hold conditions, and not an object or a set that a condition begins with."""
        at, depth = self._at, 0
        while True:
            token = self._tokens[at]
            at += 1
            if token.kind == "end":
                return True
            if token.kind == "sign":
                depth += (token.text in _OPENING) - (token.text in (")", "]", "}"))
            if depth == 0:
                break
        after = self._tokens[at]
        return after.fresh or after.text in ("else", "}", ";")

    def _else(self, rule: RegoRule) -> RegoRule | None:
        if not self._skip("else"):
            return None
        value = self._term() if self._skip("=", ":=") else None
        rest = replace(rule, value=value, body=(), otherwise=None)
        if self._skip_later("if"):
            body = self._braces() if self._is("{") and self._is_block() else (self._literal(),)
        elif self._is("{"):
            self._check_body()
            body = self._braces()
        else:
            body = ()
        if value is None and not body:
            raise self._problem("`else` has neither a value nor a body")
        return replace(rest, body=body, otherwise=self._else(rule))

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
                raise self._problem(f"{self._now.text!r} cannot stand here")
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
        """Parse a term: relations, `in` last. `first`: the operand that it begins with has been read."""
        self._enter()
        term = self._level(0, first)
        if self._skip_later("in"):
            term = Call("internal.member_2", (term, self._level(0)))
        self._depth -= 1
        return term

    def _level(self, level: int, first: Term | None = None) -> Term:
        if level == len(_LEVELS):
            return self._unary() if first is None else first
        term = self._level(level + 1, first)
        while self._now.kind == "sign" and self._now.text in _LEVELS[level]:
            term = Call(_LEVELS[level][self._take().text], (term, self._level(level + 1)))
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
            raise self._problem("there is nothing inside a number, a text, true, false or null")
        return Ref(head, tuple(path)) if path else head

    def _is_keyword(self, name: str) -> bool:
        return name in self._keywords or (name in _RESERVED and name not in _LATER)

    def _field(self, token: _Token) -> str:
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
            case "name", text if text not in _RESERVED:
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
        raise self._problem(f"{token.text!r} cannot stand here")

    def _number(self, text: str) -> Scalar:
        try:
            if abs(Decimal(text).adjusted()) > MAX_EXPONENT:
                raise ValueError(text)
            value = number(Decimal(text))
        except (ArithmeticError, ValueError):
            raise self._problem(f"{text} is no number") from None
        return Scalar(value, odd=isinstance(value, int) and not text.lstrip("-").isdigit())

    def _text(self, token: _Token) -> str:
        if token.kind == "raw":
            return token.text[1:-1]
        try:
            text = str(json.loads(token.text))
            text.encode()  # half a character is none
            return text
        except ValueError:
            raise self._problem(f"{token.text} is no text") from None

    def _array(self) -> Term:
        """Parse an array, or a comprehension: its head is an operand, since `|` is an operator too."""
        self._enter()
        if self._skip("]"):
            self._depth -= 1
            return Array(())
        first = self._unary()
        if self._skip("|"):
            return Collect("[", None, first, self._rest("]"))
        return Array(tuple(self._items(self._term(first), "]")))

    def _braced(self) -> Term:
        """Parse an object, a set, or a comprehension of either. `{}` is an object."""
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
