"""Rules written in Rego, whose `allow` must be true."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Final

from eastgate.authconfig.authorization.rego_process import RegoFailure, shared_engine
from eastgate.authconfig.authorization.rego_safety import safety_problem
from eastgate.authconfig.context import Evaluation
from eastgate.authconfig.findings import Broken, Finding, Found, NotKnown, Refused
from eastgate.authconfig.model import Rego
from eastgate.authconfig.paths import pruned, rego_mentions, touched

__all__ = ["MAX_MODULE", "by_rego", "rego_problem"]

MAX_MODULE: Final = 64 * 1024
_PACKAGE: Final = "eastgate.authz"
_ALLOW: Final = f"allow = data.{_PACKAGE}.allow"
_RULES: Final = f"rules = data.{_PACKAGE}"
_CASES: Final = re.compile(r"\b(?:lower|upper)\b|\(\?[a-zA-Z]*i")  # the engine knows the cases of ASCII only
_OWN_PACKAGE: Final = re.compile(r"\A((?:[ \t\r]*(?:#[^\n]*)?\n)*)[ \t]*package\b[^\n;#]*(?:#[^\n]*)?(?:[;\n]|\Z)")


def by_rego(rego: Rego, evaluation: Evaluation) -> Finding:
    """Whether the module allows. Whatever goes wrong in it, it does not."""
    if problem := _static_problem(rego.module):
        return Broken(f"The Rego module cannot be understood: {problem}.")
    mentions = rego_mentions(rego.module)
    if unknown := touched(mentions, evaluation.document.unknown):
        return NotKnown(unknown)
    input_ = pruned(evaluation.document.plain, mentions)
    if _CASES.search(rego.module) and not json.dumps([rego.module, input_], ensure_ascii=False).isascii():
        return Broken("The Rego module compares letter cases that its engine does not know.")
    query = _RULES if rego.all_values else _ALLOW
    engine = evaluation.services.rego or shared_engine()
    try:
        bindings = engine.ask(wrapped(rego.module), query, input_, evaluation.patience)
    except RegoFailure as failure:
        # What the engine says may repeat values; whoever wants to read it asks for `rego_problem`.
        said = str(failure) if str(failure).startswith("it ") else "it errs"
        return Broken(f"The Rego module has no answer: {said}.")
    values = bindings.get("rules") if rego.all_values else bindings
    if not isinstance(values, dict) or values.get("allow") is not True:
        return Refused("The Rego module does not allow it.")
    return Found(values, evaluation.secrets.answered(values), "The Rego module allows it.")


def rego_problem(module: str) -> str | None:
    """What keeps a text from being a module that can be evaluated, for the author; None where nothing does."""
    if problem := _static_problem(module):
        return problem
    return _compile_problem(module)


@lru_cache(maxsize=256)
def _compile_problem(module: str) -> str | None:
    try:
        shared_engine().ask(wrapped(module), _ALLOW, {})
    except RegoFailure as failure:
        messages = re.findall(r"errormsg \d+:(.*)\)", str(failure))
        return "; ".join(dict.fromkeys(messages)) or "the module cannot be evaluated"
    return None


@lru_cache(maxsize=256)
def _static_problem(module: str) -> str | None:
    if len(module) > MAX_MODULE:
        return f"the module has {len(module)} characters, and at most {MAX_MODULE} are allowed"
    return safety_problem(_without_package(module))


def _without_package(module: str) -> str:
    """The module without its own `package` line, which Authorino replaces."""
    return _OWN_PACKAGE.sub(r"\1\n", module, count=1)


def wrapped(module: str) -> str:
    """The module as it is evaluated. The default comes last, because the engine wants imports before rules."""
    return f"package {_PACKAGE}\n{_without_package(module)}\ndefault allow = false\n"
