"""Errors of requests to the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_GONE = 410


class KubeconfigError(Exception):
    """Error: a kubeconfig cannot be used."""


class UnreachableError(Exception):
    """Error: the API server did not answer, or not completely."""


class SilenceError(UnreachableError):
    """Error: a watch had no event for a long time. There may be no change, or the connection is dead."""


class ApiError(Exception):
    """Error: the API server refused a request.

    `status` is the HTTP status, `reason` and `message` are those of Kubernetes.
    """

    def __init__(self, status: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message or reason or f"HTTP {status}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details = dict(details or {})

    @property
    def is_missing(self) -> bool:
        """Return whether the object, or its kind, does not exist."""
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """Return whether another writer was faster, or the object already exists."""
        return self.status == 409

    @property
    def is_forbidden(self) -> bool:
        """Return whether RBAC forbids the request, or the credentials are unknown."""
        return self.status in (401, 403)

    @property
    def is_expired(self) -> bool:
        """Return whether the resource version of a watch or a list has expired, or never existed."""
        causes = [cause.get("reason") for cause in self.details.get("causes") or ()]
        return self.status == _GONE or self.reason in ("Expired", "Gone") or "ResourceVersionTooLarge" in causes

    @property
    def retry_after(self) -> float | None:
        """Return the seconds until the next try that the server asks for."""
        seconds = self.details.get("retryAfterSeconds")
        return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else None


def error_of(status: Mapping[str, Any], code: int | None = None) -> ApiError:
    """Return the error for a `Status` object."""
    own = status.get("code")
    details = status.get("details")
    return ApiError(
        code or (own if isinstance(own, int) else 500),
        str(status.get("reason") or ""),
        str(status.get("message") or ""),
        details if isinstance(details, Mapping) else None,
    )
