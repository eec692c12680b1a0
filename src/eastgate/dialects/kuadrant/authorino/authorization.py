"""Authorization evaluators: patterns, CEL, Rego, SubjectAccessReview, SpiceDB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from eastgate.basics.caching import SizedCache
from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.authorino.calls import ask_cached, send
from eastgate.dialects.kuadrant.authorino.conditions import ConditionResult, evaluate_condition
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import PermissionAnswer, PermissionQuestion, ServerResponse, Unavailable
from eastgate.dialects.kuadrant.authorino.model import (
    Authorization,
    FetchedModule,
    PatternRules,
    PermissionCheck,
    Rego,
    SubjectAccess,
    Value,
)
from eastgate.dialects.kuadrant.authorino.outcomes import ERRS, FAILS, HOLDS, Broken, Finding, Found, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.paths import prune, rego_mentions
from eastgate.dialects.kuadrant.authorino.values import resolve, stringified
from eastgate.dialects.kuadrant.rego import NoAnswer, RegoProgram, UnsupportedModule, evaluate, program
from eastgate.ir import Seen
from eastgate.ir.attributes import UNKNOWN
from eastgate.reading.strict_json import JsonProblem, read_json, read_object

# Asks the API server for the permissions of a user (SubjectAccessReview).


def by_access_review(access: SubjectAccess, evaluation: Evaluation) -> Finding:
    """Return whether the API server allows the access to this user."""
    spec = _spec(access, evaluation)
    if not isinstance(spec, dict):
        return spec
    if evaluation.services.reviewer is None:
        return NotKnown("the answer of the API server about the access")
    try:
        answer = evaluation.services.reviewer.access(spec)
    except Unavailable as problem:
        return Broken(f"The API server cannot be asked about the access: {problem}.")
    if answer.granted:
        return Found(True, True, "The API server grants the access.")
    return Refused(f"not authorized: {answer.reason or 'unknown reason'}", for_client=True)


def _spec(access: SubjectAccess, evaluation: Evaluation) -> dict[str, object] | NotKnown | Broken:
    user = _text(access.user, evaluation)
    if not isinstance(user, str):
        return user
    groups = _groups(access, evaluation)
    if not isinstance(groups, list):
        return groups
    if not user and not groups:
        return Broken("There is no user to ask the API server about.")
    spec: dict[str, object] = {"user": user}
    if groups:
        spec["groups"] = groups
    if access.resource is None:
        request = evaluation.request
        if request.path is UNKNOWN:
            return NotKnown("the path")
        if request.method is UNKNOWN:
            return NotKnown("the method")
        spec["nonResourceAttributes"] = {"path": request.path, "verb": request.method.lower()}
        return spec
    attributes: dict[str, str] = {}
    for name, value in access.resource.items():
        text = _text(value, evaluation)
        if not isinstance(text, str):
            return text
        attributes[name] = text
    spec["resourceAttributes"] = attributes
    return spec


def _groups(access: SubjectAccess, evaluation: Evaluation) -> list[str] | NotKnown | Broken:
    """Return the groups. Selected groups are a list of texts, or the JSON text of a list."""
    text = _text(access.selected_groups, evaluation) if access.selected_groups is not None else None
    if text is None:
        return list(access.groups)
    if not isinstance(text, str):
        return text
    try:
        groups = read_json(text.encode())
    except ValueError:
        groups = None
    if isinstance(groups, list):
        texts = [group for group in groups if isinstance(group, str)]
        if texts == groups:
            return texts
    return Broken("The groups to ask the API server about are not a list of texts.")


def _text(value: Value | None, evaluation: Evaluation) -> str | NotKnown | Broken:
    if value is None:
        return ""
    value_found = resolve(value, evaluation.document)
    return stringified(value_found.value) if isinstance(value_found, Found) else value_found


# Asks a SpiceDB server whether a subject has a permission on a resource.


_NAMES = {0: "UNSPECIFIED", 1: "NO_PERMISSION", 2: "HAS_PERMISSION", 3: "CONDITIONAL_PERMISSION"}
_NO_NAME = "There is no name to ask the SpiceDB server about."


def by_permission(check: PermissionCheck, evaluation: Evaluation) -> Finding:
    """Return whether the server grants the permission, without conditions."""
    question = _question(check, evaluation)
    if not isinstance(question, PermissionQuestion):
        return question
    if evaluation.services.permissions is None:
        return NotKnown("the answer of the SpiceDB server about the permission")
    try:
        answer = evaluation.services.permissions.check(question)
    except Unavailable as problem:
        return Broken(f"The SpiceDB server cannot be asked about the permission: {problem}.")
    if answer.permissionship != PermissionAnswer.HAS_PERMISSION:
        name = _NAMES.get(answer.permissionship, str(answer.permissionship))
        token = f";token={answer.checked_at}" if answer.checked_at else ""
        return Refused(f"PERMISSIONSHIP_{name}{token}", for_client=True)
    value: dict[str, object] = {"permissionship": answer.permissionship}
    if answer.checked_at:
        value["checked_at"] = {"token": answer.checked_at}
    return Found(value, value, "The SpiceDB server grants the permission.")


def _question(check: PermissionCheck, evaluation: Evaluation) -> PermissionQuestion | NotKnown | Broken:
    texts: list[str] = []
    for value in (check.resource_kind, check.resource, check.permission, check.subject_kind, check.subject):
        if value is None:
            return Broken(_NO_NAME)
        finding = resolve(value, evaluation.document)
        if not isinstance(finding, Found):
            return finding
        texts.append(stringified(finding.value))
    if not all(texts):
        return Broken(_NO_NAME)
    token = ""
    if check.shared_secret is not None:
        secret = evaluation.services.secret(evaluation.scheme.namespace, check.shared_secret.name)
        held = secret.data.get(check.shared_secret.key) if secret is not None else None
        if not held:
            reference = check.shared_secret
            return Broken(f"There is no {reference.key} in a Secret {reference.name} to ask the SpiceDB server with.")
        token = held.decode("utf-8", "replace")
        evaluation.secrets.add_proven(token)
    resource_kind, resource, permission, subject_kind, subject = texts
    return PermissionQuestion(
        check.endpoint, (resource_kind, resource), permission, (subject_kind, subject), check.insecure, token
    )


# Fetches Rego modules from their servers, and keeps each for as long as the scheme says.


_SERVER: Final = "the server of the Rego module"
_MODULE_CACHE_SECONDS: Final = 31_536_000  # seconds to keep a module that is not fetched again


def fetched_module(fetched: FetchedModule, evaluation: Evaluation) -> str | NotKnown | Broken:
    """Return the text of the module. An expired module is not used if it cannot be fetched again."""
    cache = evaluation.services.cache
    key = ("module", evaluation.scheme, fetched)
    held = cache.get(key) if cache is not None else None
    if held is not None:
        return str(held.value)
    answer = send(fetched.call, evaluation, _SERVER)
    if not isinstance(answer, ServerResponse):
        return answer
    if answer.status != 200:
        return Broken(f"The server of the Rego module answers {answer.status}.")
    module = _module_text(answer)
    if not isinstance(module, str):
        return Broken("The answer of the server of the Rego module contains no module.")
    if cache is not None:
        cache.put(key, Found(module, None), fetched.seconds or _MODULE_CACHE_SECONDS)
    return module


def _module_text(answer: ServerResponse) -> object:
    """Return the module: the whole body, or the field `result.raw` of OPA's own API."""
    try:
        if "application/json" not in answer.content_type:
            return answer.body.decode()
        result = read_object(answer.body).get("result")
    except (JsonProblem, UnicodeDecodeError):
        return None
    return result.get("raw") if isinstance(result, Mapping) else None


# Evaluates rules written in Rego, whose `allow` must be true.


MAX_MODULE_CHARACTERS: Final = 64 * 1024
_TAKEN_AWAY: Final = regex(r"[\t\n\f\r ]*package.*[;\n]+")  # as Authorino does, at any place of the module
_PACKAGE: Final = regex(r"\A[\t\n\f\r ]*package[ \t]+[\w.\[\]\"-]+[ \t\r]*(?:#[^\n]*)?\n+")


def by_rego(rego: Rego, evaluation: Evaluation) -> Finding:
    """Return whether the module allows. Every error denies."""
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
        values = evaluate(program, input_, int(evaluation.request.time * 1e9), evaluation.rego_budget)
    except NoAnswer as problem:
        return Broken(f"The Rego module has no answer: {problem}.")
    if values.get("allow") is not True:
        return Refused("The Rego module does not allow it.")
    kept = {name: values.get(name) for name in program.rules} if rego.all_values else {"allow": True}
    return Found(kept, evaluation.secrets.mask_answer(kept), "The Rego module allows it.")


def rego_problem(module: str, version: int = 0) -> str | None:
    """Return why a text is not a module that can be evaluated, for the author; None if it is one."""
    program = _program(module, version)
    return str(program) if isinstance(program, UnsupportedModule) else None


_PROGRAMS: Final = SizedCache[tuple[str, int], RegoProgram | UnsupportedModule](1 << 20)  # characters


def _program(module: str, version: int) -> RegoProgram | UnsupportedModule:
    return _PROGRAMS.get((module, version), lambda: (_compile(module, version), len(module)))


def _compile(module: str, version: int) -> RegoProgram | UnsupportedModule:
    if len(module) > MAX_MODULE_CHARACTERS:
        return UnsupportedModule(
            f"the module has {len(module)} characters, and at most {MAX_MODULE_CHARACTERS} are allowed"
        )
    cleaned = _TAKEN_AWAY.sub("", module)
    if cleaned != _PACKAGE.sub("", module, count=1):
        return UnsupportedModule(
            "Authorino removes every `package` with the rest of its line and the white space before it; "
            "write it once, at the start of a separate line"
        )
    return program(cleaned, version, default="allow")


# Evaluates one authorization rule of a scheme on one request.


def authorize(authorization: Authorization, evaluation: Evaluation) -> tuple[Finding, tuple[Seen, ...]]:
    """Return whether the rule allows, and the values of its patterns."""
    seen: list[Seen] = []
    finding = ask_cached(
        evaluation.services.cache,
        authorization.cache,
        (evaluation.scheme, authorization),
        evaluation.document,
        lambda: _authorize(authorization, evaluation, seen),
    )
    return finding, tuple(seen)


def _authorize(authorization: Authorization, evaluation: Evaluation, seen: list[Seen]) -> Finding:
    match authorization.rule:
        case PatternRules(condition):
            result = evaluate_condition(condition, evaluation.document)
            seen += result.seen
            return _by_patterns(result)
        case Rego() as rego:
            return by_rego(rego, evaluation)
        case SubjectAccess() as access:
            return by_access_review(access, evaluation)
        case PermissionCheck() as check:
            return by_permission(check, evaluation)


def _by_patterns(result: ConditionResult) -> Finding:
    if result.outcomes == HOLDS:
        return Found(True, True, "Its conditions hold.")
    if result.outcomes == FAILS:
        return Refused(result.reason or "Its conditions do not hold.")
    if result.outcomes == ERRS:
        return Broken(result.reason)
    return NotKnown(result.unknown)


__all__ = ["authorize"]
