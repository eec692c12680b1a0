"""Short names of kinds, as `kubectl get` and `eastgate get` take them. None of them is one that another project has."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["SHORT_NAMES"]

SHORT_NAMES: Mapping[str, str] = {
    "AuthorizationPolicy": "authzpol",
    "XAuthorizationPolicy": "xauthzpol",
    "ClusterAuthorizationPolicy": "cauthzpol",
    "XAccessPolicy": "xap",
    "XBackend": "xbe",
    "AuthPolicy": "authpol",
}
