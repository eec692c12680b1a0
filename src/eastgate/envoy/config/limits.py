"""The limits of size and depth within which Envoy accepts a resource. Anything beyond is not sent."""

from __future__ import annotations

from typing import Final

from envoy.config.core.v3 import extension_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from envoy.extensions.filters.network.rbac.v3 import rbac_pb2 as network_rbac_pb2
from google.protobuf.message import DecodeError

from eastgate.envoy.server.resources import EXTENSION, LISTENER, XdsResource

LARGEST: Final = 64 * 1024 * 1024  # bytes
_RULES: Final = (http_rbac_pb2.RBAC, network_rbac_pb2.RBAC)


def find_obstacle(resource: XdsResource) -> str | None:
    """Return why a proxy would not accept a resource; None where nothing is known against it.

    Protobuf reads messages up to a depth of 100, here as in Envoy: what cannot be parsed here cannot be parsed there.
    """
    if resource.size > LARGEST:
        return f"{resource.name} has {resource.size} bytes, more than {LARGEST}"
    try:
        if resource.type_url == LISTENER:
            listener_pb2.Listener.FromString(resource.body)
        elif resource.type_url == EXTENSION:
            packed = extension_pb2.TypedExtensionConfig.FromString(resource.body).typed_config
            for kind in _RULES:
                packed.Unpack(kind())
    except DecodeError as error:
        return f"{resource.name} is nested too deeply ({error})"
    return None
