"""Parses a module: Rego before version 1, with its later keywords."""

from __future__ import annotations

import itertools
from dataclasses import replace

from eastgate.dialects.kuadrant.rego.syntax import (
    Module,
    Ref,
    RegoRule,
    Scalar,
    Var,
)
from eastgate.dialects.kuadrant.rego.terms import TermParser
from eastgate.dialects.kuadrant.rego.tokens import (
    LATER,
    OPENING,
    is_constant,
    tokens_of,
)


def parse(module: str, version: int = 0) -> Module:
    """Parse a module without its `package` line. `version`: of the language, 0 or 1. Raises UnsupportedModule."""
    return _ModuleParser(tuple(tokens_of(module)), version).module()


class _ModuleParser(TermParser):
    """Parses imports and rules."""

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
                raise self._problem(f"{self._now.text!r} is not allowed here")
        return Module(tuple(rules), imports, self._version)

    def _find_keywords(self) -> None:
        """Collect the imported keywords, from any place of the module."""
        for at, token in enumerate(self._tokens):
            if token.kind == "name" and token.text == "import" and token.fresh:
                path = "".join(part.text for part in itertools.islice(self._tokens, at + 1, at + 6))
                if path.startswith("rego.v1"):
                    self._version, self._keywords = 1, LATER
                elif path.startswith("future.keywords"):
                    keyword = self._tokens[at + 5].text if self._tokens[at + 4].text == "." else None
                    self._keywords |= LATER if keyword is None else {keyword, *(["in"] if keyword == "every" else [])}

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
        if given is None and [head, *path[:1]] == ["future", "keywords"] and len(path) == 2 and path[1] in LATER:
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
            if value is None or key is not None or not is_constant(value):
                raise self._problem("a default is written `default name = value`, with a literal value")
            return [rule]
        rules = self._bodies(rule, listed=listed)
        if key is not None and any(parsed.otherwise is not None for parsed in rules):
            raise self._problem("only a rule with one value can have an `else`")
        if self._version and any(parsed.is_set for parsed in rules) and not listed:
            raise self._problem("a part of a set is written `name contains value`")
        return [self._with_value(parsed) for parsed in rules]

    def _with_value(self, rule: RegoRule) -> RegoRule:
        """Return a rule with the value true, unless it has a value or is part of a set."""
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
        """Return whether braces contain conditions. Otherwise a condition begins with an object or a set."""
        at, depth = self._at, 0
        while True:
            token = self._tokens[at]
            at += 1
            if token.kind == "end":
                return True
            if token.kind == "sign":
                depth += (token.text in OPENING) - (token.text in (")", "]", "}"))
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
