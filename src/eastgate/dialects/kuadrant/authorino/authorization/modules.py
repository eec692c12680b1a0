"""Fetches Rego modules from the servers that publish them, and keeps each for as long as the scheme says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from eastgate.dialects.kuadrant.authorino.calls import send
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import ServerResponse
from eastgate.dialects.kuadrant.authorino.findings import Broken, Found, NotKnown
from eastgate.dialects.kuadrant.authorino.model import FetchedModule
from eastgate.reading.strict_json import JsonProblem, read_object

_SERVER: Final = "the server of the Rego module"
_ALWAYS: Final = 31_536_000  # seconds for which a module is kept that is not to be fetched again


def fetched_module(fetched: FetchedModule, evaluation: Evaluation) -> str | NotKnown | Broken:
    """Return the text of the module. One that can no longer be fetched when its time is up is not used."""
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
    module = _text(answer)
    if not isinstance(module, str):
        return Broken("The answer of the server of the Rego module has no module in it.")
    if cache is not None:
        cache.put(key, Found(module, None), fetched.seconds or _ALWAYS)
    return module


def _text(answer: ServerResponse) -> object:
    """Return the module: the whole body, or what OPA's own API has under `result.raw`."""
    try:
        if "application/json" not in answer.content_type:
            return answer.body.decode()
        result = read_object(answer.body).get("result")
    except (JsonProblem, UnicodeDecodeError):
        return None
    return result.get("raw") if isinstance(result, Mapping) else None
