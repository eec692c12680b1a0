"""Sources of metadata: HTTP requests, UserInfo of OpenID Connect, resources of User-Managed Access."""

from eastgate.dialects.kuadrant.authorino.metadata.sources import fetch_metadata

__all__ = ["fetch_metadata"]
