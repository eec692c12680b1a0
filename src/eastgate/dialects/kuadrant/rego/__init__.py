"""Rego, as OPA evaluates it, for modules that are given as text.

Eastgate supports the part of Rego whose decisions were compared with OPA's: the language before version 1 with its
later keywords, and some built-in functions. Everything else is a problem of the module, and is
reported when the module is read. An evaluation is limited in steps and sizes. Over a limit there is no answer, which
denies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from eastgate.basics.caching import SizedCache
from eastgate.dialects.kuadrant.rego.compiling import RegoProgram, compile_module
from eastgate.dialects.kuadrant.rego.evaluating import NoAnswer, StepBudget, evaluate_program
from eastgate.dialects.kuadrant.rego.parser import parse
from eastgate.dialects.kuadrant.rego.syntax import RegoRule, Scalar, UnsupportedModule
from eastgate.dialects.kuadrant.rego.values import from_json, to_json

__all__ = ["NoAnswer", "RegoProgram", "StepBudget", "UnsupportedModule", "evaluate", "program"]


_PROGRAMS: Final = SizedCache[tuple[str, int, str | None], RegoProgram | UnsupportedModule](1 << 20)  # characters


def program(module: str, version: int = 0, default: str | None = None) -> RegoProgram | UnsupportedModule:
    """Compile a module without its `package` line, or return its problem."""
    return _PROGRAMS.get((module, version, default), lambda: (_compile(module, version, default), len(module)))


def _compile(module: str, version: int, default: str | None) -> RegoProgram | UnsupportedModule:
    try:
        parsed = parse(module, version)
        if default is not None:
            parsed = replace(
                parsed, rules=(RegoRule(default, None, None, Scalar(False), (), default=True), *parsed.rules)
            )
        return compile_module(parsed)
    except UnsupportedModule as problem:
        return problem.with_traceback(None)  # the cache must not keep the traceback
    except RecursionError:
        return UnsupportedModule("the module is nested too deeply")


def evaluate(program: RegoProgram, input_: object, now: int, budget: StepBudget | None = None) -> dict[str, object]:
    """Return the values of all rules with a value, as JSON. `now`: nanoseconds since 1970. Raises NoAnswer."""
    try:
        values = evaluate_program(program, from_json(input_), now, budget or StepBudget())
        return {name: to_json(value) for name, value in values.items()}
    except RecursionError:
        raise NoAnswer("it is too deep") from None
    except (ValueError, ArithmeticError):
        raise NoAnswer("its input or its result is not JSON") from None
