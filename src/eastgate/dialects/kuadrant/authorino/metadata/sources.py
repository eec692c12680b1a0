"""Fetches the metadata of one source."""

from __future__ import annotations

from eastgate.dialects.kuadrant.authorino.caching import ask_cached
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.findings import Finding
from eastgate.dialects.kuadrant.authorino.metadata.http import by_http
from eastgate.dialects.kuadrant.authorino.metadata.uma import by_uma
from eastgate.dialects.kuadrant.authorino.metadata.user_info import by_user_info
from eastgate.dialects.kuadrant.authorino.model import HttpCall, Metadata, MetadataSource, UmaResources, UserInfo


def fetch_metadata(metadata: Metadata, evaluation: Evaluation) -> Finding:
    """Ask the server. Without a fetcher, its answer is unknown."""
    return ask_cached(
        evaluation.services.cache,
        metadata.cache,
        (evaluation.scheme, metadata),
        evaluation.document,
        lambda: _fetch(metadata.source, evaluation),
    )


def _fetch(source: MetadataSource, evaluation: Evaluation) -> Finding:
    match source:
        case HttpCall():
            return by_http(source, evaluation)
        case UserInfo():
            return by_user_info(source, evaluation)
        case UmaResources():
            return by_uma(source, evaluation)
