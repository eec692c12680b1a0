"""Callers with a key that a Secret holds."""

from __future__ import annotations

import base64
import hmac

from eastgate.authconfig.context import Evaluation
from eastgate.authconfig.credentials import credential
from eastgate.authconfig.facts import Unavailable
from eastgate.authconfig.findings import Broken, Finding, Found, Refused
from eastgate.authconfig.model import ApiKeys, Credentials
from eastgate.authconfig.secrecy import MASK
from eastgate.world import Secret

__all__ = ["by_api_key"]

KEY = "api_key"
_WHOLE = "/last-applied-configuration"


def by_api_key(keys: ApiKeys, credentials: Credentials, evaluation: Evaluation) -> Finding:
    """Whose key it is. Every Secret is compared in full, so that the time taken tells nothing."""
    given = credential(credentials, evaluation.request)
    if not isinstance(given, str):
        return given
    offered = given.encode("utf-8", "surrogatepass")
    try:
        secrets = sorted(evaluation.services.secrets(evaluation.scheme.namespace, keys.secrets), key=_order)
    except Unavailable as problem:
        return Broken(f"The Secrets with the keys cannot be read: {problem}.")
    owner: Secret | None = None
    for secret in secrets:
        key = secret.data.get(KEY, b"")
        if hmac.compare_digest(key, offered) and key and owner is None:
            owner = secret
    if owner is None:
        return Refused("The API key is not one of the accepted ones.")
    evaluation.secrets.proven(*(value.decode("utf-8", "replace") for value in owner.data.values()))
    data: dict[str, object] = {
        name: base64.b64encode(value).decode() for name, value in owner.data.items() if name != KEY
    }
    # The key itself is not in the document: nothing needs to compare it again.
    hidden: dict[str, object] = dict.fromkeys((*data, KEY), MASK)
    return Found(_as_object(owner, data), _as_object(owner, hidden), f"The API key is that of Secret {owner.name}.")


def _order(secret: Secret) -> tuple[str, str]:
    return secret.namespace, secret.name


def _as_object(secret: Secret, data: dict[str, object]) -> dict[str, object]:
    metadata: dict[str, object] = {"name": secret.name}
    if secret.namespace:
        metadata["namespace"] = secret.namespace
    if secret.labels:
        metadata["labels"] = dict(secret.labels)
    if secret.annotations:
        # What kubectl keeps there is the whole Secret again.
        kept = {
            name: text for name, text in secret.annotations.items() if not name.endswith("last-applied-configuration")
        }
        metadata["annotations"] = kept
    return {"metadata": metadata, "data": data}
