"""Why a request to the API server came to nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_GONE = 410


class KubeconfigError(Exception):
    """A kubeconfig that cannot be used."""


class UnreachableError(Exception):
    """No answer of the API server, or half of one."""


class SilenceError(UnreachableError):
    """A watch on which nothing came for long. There may be no news, or the connection is dead."""


class ApiError(Exception):
    """An answer of the API server that is a refusal: `status` is of HTTP, `reason` and `message` are Kubernetes'."""

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
        """Return whether another writer was faster, or an object of that name exists."""
        return self.status == 409

    @property
    def is_forbidden(self) -> bool:
        """Return whether RBAC forbids it, or the credentials are unknown."""
        return self.status in (401, 403)

    @property
    def is_expired(self) -> bool:
        """Return whether what a watch or a list was to go on from is no longer kept, or was never there."""
        causes = [cause.get("reason") for cause in self.details.get("causes") or ()]
        return self.status == _GONE or self.reason in ("Expired", "Gone") or "ResourceVersionTooLarge" in causes

    @property
    def retry_after(self) -> float | None:
        """Return the seconds that the server asks to wait before the next try."""
        seconds = self.details.get("retryAfterSeconds")
        return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else None


def error_of(status: Mapping[str, Any], code: int | None = None) -> ApiError:
    """Return the error that a `Status` object tells of."""
    own = status.get("code")
    details = status.get("details")
    return ApiError(
        code or (own if isinstance(own, int) else 500),
        str(status.get("reason") or ""),
        str(status.get("message") or ""),
        details if isinstance(details, Mapping) else None,
    )
