"""The command of a later version of Eastgate with the same decisions, but other bytes in extension configs."""

from __future__ import annotations

from unittest import mock

from google.protobuf.message import Message

from eastgate.cli import main
from eastgate.envoy.config import gateway_filters, rbac
from eastgate.envoy.server import XdsResource, respelling

_written = rbac.extension_resource


def _extension_resource(name: str, config: Message, policies: frozenset[str] = frozenset()) -> XdsResource:
    resource = _written(name, config, policies)
    with mock.patch.object(respelling, "token_hex", return_value="next"):
        return XdsResource(resource.type_url, resource.name, respelling.respell(resource), resource.policies)


if __name__ == "__main__":
    for module in (rbac, gateway_filters):
        setattr(module, _written.__name__, _extension_resource)
    main()
