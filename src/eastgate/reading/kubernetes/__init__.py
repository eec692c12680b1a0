"""Client for the API server of a cluster: credentials, requests, discovery of kinds, and watches of objects.

This package does not depend on policies. lightkube reads kubeconfigs and credentials. The rest is implemented here,
because a controller needs details that client libraries hide: why a watch ended, which objects a list left out, and
which kinds were added or removed.
"""

from eastgate.reading.kubernetes.connection import DEFINITIONS, Connection, JsonObject, connect
from eastgate.reading.kubernetes.discovery import Discovery, Resource
from eastgate.reading.kubernetes.errors import ApiError, KubeconfigError, UnreachableError
from eastgate.reading.kubernetes.reflector import Deleted, ObjectEvent, Put, Reflector, Replaced, Synced

__all__ = [
    "DEFINITIONS",
    "ApiError",
    "Connection",
    "Deleted",
    "Discovery",
    "JsonObject",
    "KubeconfigError",
    "ObjectEvent",
    "Put",
    "Reflector",
    "Replaced",
    "Resource",
    "Synced",
    "UnreachableError",
    "connect",
]
