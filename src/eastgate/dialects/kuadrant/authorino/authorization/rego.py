"""Evaluates rules written in Rego, whose `allow` must be true."""

from __future__ import annotations

from typing import Final

from eastgate.basics.caching import SizedCache
from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.authorino.authorization.modules import fetched_module
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.model import Rego
from eastgate.dialects.kuadrant.authorino.paths import prune, rego_mentions
from eastgate.dialects.kuadrant.rego import NoAnswer, RegoProgram, UnsupportedModule, evaluate, program

MAX_MODULE: Final = 64 * 1024
_TAKEN_AWAY: Final = regex(r"[\t\n\f\r ]*package.*[;\n]+")  # as Authorino does, wherever it stands
_PACKAGE: Final = regex(r"\A[\t\n\f\r ]*package[ \t]+[\w.\[\]\"-]+[ \t\r]*(?:#[^\n]*)?\n+")


def by_rego(rego: Rego, evaluation: Evaluation) -> Finding:
    """Return whether the module allows. Whatever goes wrong in it, it does not."""
    module = fetched_module(rego.fetched, evaluation) if rego.fetched is not None else rego.module
    if not isinstance(module, str):
        return module
    program = _program(module, rego.version)
    if isinstance(program, UnsupportedModule):
        return Broken(f"The Rego module cannot be understood: {program}.")
    mentions = rego_mentions(module)
    if unknown := evaluation.document.unknown_to(mentions):
        return NotKnown(unknown)
    input_ = prune(evaluation.document.plain_for(mentions), mentions)
    try:
        values = evaluate(program, input_, int(evaluation.request.time * 1e9), evaluation.patience)
    except NoAnswer as problem:
        return Broken(f"The Rego module has no answer: {problem}.")
    if values.get("allow") is not True:
        return Refused("The Rego module does not allow it.")
    kept = {name: values.get(name) for name in program.rules} if rego.all_values else {"allow": True}
    return Found(kept, evaluation.secrets.mask_answer(kept), "The Rego module allows it.")


def rego_problem(module: str, version: int = 0) -> str | None:
    """Return what keeps a text from being a module that can be evaluated, for the author; None where nothing does."""
    program = _program(module, version)
    return str(program) if isinstance(program, UnsupportedModule) else None


_PROGRAMS: Final = SizedCache[tuple[str, int], RegoProgram | UnsupportedModule](1 << 20)  # characters


def _program(module: str, version: int) -> RegoProgram | UnsupportedModule:
    return _PROGRAMS.get((module, version), lambda: (_compile(module, version), len(module)))


def _compile(module: str, version: int) -> RegoProgram | UnsupportedModule:
    if len(module) > MAX_MODULE:
        return UnsupportedModule(f"the module has {len(module)} characters, and at most {MAX_MODULE} are allowed")
    cleaned = _TAKEN_AWAY.sub("", module)
    if cleaned != _PACKAGE.sub("", module, count=1):
        return UnsupportedModule(
            "Authorino takes away every `package` with the rest of its line and the white space before it; "
            "write it once, on a line of its own with nothing before it"
        )
    return program(cleaned, version, default="allow")
