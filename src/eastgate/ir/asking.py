"""Asking the authorizers of layers: each at most once for a request, and only when a rule selects the request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from eastgate.ir.authorizers import Answer, Authorizer, RawRequest, Ruling
from eastgate.ir.requests import Request
from eastgate.ir.rules import Layer, Refusal

__all__ = ["ask_authorizers", "authorizers_in"]


def authorizers_in(layers: Iterable[Layer]) -> dict[str, Authorizer]:
    """Return the authorizers that layers may ask and that we run ourselves, by name."""
    return {ask.authorizer: ask.evaluator for layer in layers for ask in layer.asks if ask.evaluator is not None}


def ask_authorizers(request: Request, raw: RawRequest, authorizers: Mapping[str, Authorizer]) -> Request:
    """Return the request with the answers of authorizers, each worked out when an engine first looks at it."""
    if not authorizers:
        return request
    return Request(request.values, _Answers(request, raw, authorizers), request.assumed)


class _Answers(Mapping[str, Answer]):
    """The answers that were given, and those of authorizers, which are asked once."""

    def __init__(self, request: Request, raw: RawRequest, authorizers: Mapping[str, Authorizer]) -> None:
        self._known = dict(request.answers)
        self._request = request
        self._raw = raw
        self._authorizers = authorizers

    def __getitem__(self, name: str) -> Answer:
        if name not in self._known and name in self._authorizers:
            self._known[name] = self._ask(self._authorizers[name])
        return self._known[name]

    def _ask(self, authorizer: Authorizer) -> Ruling:
        if self._request.refused_path and authorizer.looks_at_path:
            return Ruling(False, Refusal.BAD_REQUEST, "its path has an encoded slash or backslash")
        return authorizer.answer(self._request, self._raw)

    def __iter__(self) -> Iterator[str]:
        return iter({*self._known, *self._authorizers})

    def __len__(self) -> int:
        return len({*self._known, *self._authorizers})
