"""The API server of a cluster: credentials, requests, the kinds that it serves, and their objects as they change.

Knows nothing of policies. lightkube reads kubeconfigs and credentials; the rest is in here, since a controller must
know what no client library tells: why a watch ended, what a list left out, and which kinds came and went.
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
