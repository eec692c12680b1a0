"""Callers with a Kubernetes token, which the API server knows."""

from __future__ import annotations

from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.credentials import credential
from eastgate.dialects.kuadrant.authorino.facts import Unavailable
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.model import Credentials, TokenReview
from eastgate.ir.attributes import UNKNOWN


def by_review(review: TokenReview, credentials: Credentials, evaluation: Evaluation) -> Finding:
    """Ask the API server whose token it is. Without audiences in the scheme, it must be for the host of the request."""
    token = credential(credentials, evaluation.request)
    if not isinstance(token, str):
        return token
    audiences = review.audiences
    if not audiences:
        if evaluation.request.host is UNKNOWN:
            return NotKnown("the host")
        audiences = (evaluation.request.host,)
    if evaluation.services.reviewer is None:
        return NotKnown("what an API server would say about the token")
    try:
        answer = evaluation.services.reviewer.token(token, audiences)
    except Unavailable as problem:
        return Broken(f"The API server cannot be asked about the token: {problem}.")
    if not answer.granted:
        return Refused("The API server does not know the token.")
    evaluation.secrets.add_proven(token)
    return Found(dict(answer.status), dict(answer.status), "The API server knows the token.")
