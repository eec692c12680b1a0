"""Callers with a key that a Secret holds."""

from __future__ import annotations

import base64
import hmac

from eastgate.cluster import Secret
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.credentials import credential
from eastgate.dialects.kuadrant.authorino.facts import Unavailable
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found, Refused
from eastgate.dialects.kuadrant.authorino.keyring import API_KEY
from eastgate.dialects.kuadrant.authorino.model import ApiKeys, Credentials
from eastgate.dialects.kuadrant.authorino.secrecy import MASK

_WHOLE = "/last-applied-configuration"


def by_api_key(keys: ApiKeys, credentials: Credentials, evaluation: Evaluation) -> Finding:
    """Find the Secret of a key. The time taken tells nothing of the keys that there are."""
    given = credential(credentials, evaluation.request)
    if not isinstance(given, str):
        return given
    offered = given.encode("utf-8", "surrogatepass")
    try:
        owner = _owner(keys, offered, evaluation)
    except Unavailable as problem:
        return Broken(f"The Secrets with the keys cannot be read: {problem}.")
    if owner is None:
        return Refused("The API key is not one of the accepted ones.")
    evaluation.secrets.add_proven(*(value.decode("utf-8", "replace") for value in owner.data.values()))
    reason = f"The API key is that of Secret {owner.name}."
    return Found(_as_object(owner), _as_object(owner, masked=True), reason)


def _owner(keys: ApiKeys, offered: bytes, evaluation: Evaluation) -> Secret | None:
    services, selector = evaluation.services, keys.secrets
    namespace = None if keys.all_namespaces else evaluation.scheme.namespace
    if services.api_key_owner is not None:
        return services.api_key_owner(namespace, selector, offered)
    owner: Secret | None = None
    for secret in sorted(services.secrets(namespace, selector), key=_order):
        key = secret.data.get(API_KEY, b"")
        if hmac.compare_digest(key, offered) and key and owner is None:
            owner = secret
    return owner


def _order(secret: Secret) -> tuple[str, str]:
    return secret.namespace, secret.name


def _as_object(secret: Secret, *, masked: bool = False) -> dict[str, object]:
    """Return the Secret as an API server gives it, as far as its manifest tells."""
    metadata: dict[str, object] = {"name": secret.name}
    if secret.namespace:
        metadata["namespace"] = secret.namespace
    if secret.labels:
        metadata["labels"] = dict(secret.labels)
    if secret.annotations:  # in one of which kubectl keeps the whole Secret again
        metadata["annotations"] = {
            name: MASK if masked and name.endswith(_WHOLE) else text for name, text in secret.annotations.items()
        }
    data = {name: MASK if masked else base64.b64encode(value).decode() for name, value in secret.data.items()}
    return {"metadata": metadata, "data": data, "type": secret.type}
