"""Calls of gRPC as a gateway sees them: HTTP requests to `/<service>/<method>`."""

from __future__ import annotations

import re

from eastgate.cluster import GrpcMatch
from eastgate.cluster.route_predicates import CANONICAL
from eastgate.ir import ALWAYS, Is, OneOf, Predicate, all_of
from eastgate.ir.attributes import METHOD, PATH

_POST = Is(METHOD, OneOf(frozenset({"POST"})))
_ANY = "[^/]+"


def call_predicate(match: GrpcMatch) -> Predicate:
    """Match the requests of the calls that a match means; to a GRPCRoute no request but a POST is a call."""
    return all_of((_POST, _path(match), *CANONICAL.headers(match.headers)))


def _path(match: GrpcMatch) -> Predicate:
    if match.service is None and match.method is None:
        return ALWAYS
    if match.regex:
        service, method = (f"(?:{name})" if name is not None else _ANY for name in (match.service, match.method))
        return CANONICAL.pattern(PATH, f"/{service}/{method}")
    if match.service is None:
        return CANONICAL.pattern(PATH, f"/{_ANY}/{re.escape(match.method or '')}")
    if match.method is None:
        return CANONICAL.under(f"/{match.service}/")
    return CANONICAL.equal(f"/{match.service}/{match.method}")
