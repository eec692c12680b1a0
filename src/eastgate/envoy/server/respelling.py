"""Writes a resource in other bytes with the same meaning, so that Envoy validates it.

Envoy compares an extension config or a secret with the last one of its name. If they are equal, it accepts without
validation, even after a rejection. A control plane may not know the earlier resources of the proxy, from another
replica or before a restart. So it sends a spelling that is new to the proxy. The acceptance then means that Envoy has
validated the resource and runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_hex
from typing import Any, Final, TypeAlias

from envoy.config.core.v3 import extension_pb2
from envoy.extensions.filters.http.lua.v3 import lua_pb2
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from envoy.extensions.filters.http.set_filter_state.v3 import set_filter_state_pb2
from envoy.extensions.filters.network.rbac.v3 import rbac_pb2 as network_rbac_pb2
from envoy.extensions.transport_sockets.tls.v3 import secret_pb2, tls_spiffe_validator_config_pb2

from eastgate.envoy.server.resources import EXTENSION, SECRET, XdsResource

Respell: TypeAlias = Callable[[XdsResource], bytes]

_MARK_BYTES: Final = 8


def respell(resource: XdsResource) -> bytes:
    """Return the body of an extension config or a secret in a spelling that no proxy has seen.

    Raises ValueError for a resource without a place for a mark.
    """
    mark = token_hex(_MARK_BYTES)
    if resource.type_url == EXTENSION:
        return _respell_extension(resource.body, mark)
    if resource.type_url == SECRET:
        return _respell_secret(resource.body, mark)
    raise ValueError(f"{resource.type_url} is validated whenever it is sent")


def _respell_extension(body: bytes, mark: str) -> bytes:
    extension = extension_pb2.TypedExtensionConfig.FromString(body)
    packed = extension.typed_config
    for kind, write in _EXTENSIONS:
        if packed.Is(kind.DESCRIPTOR):
            config = kind.FromString(packed.value)
            write(config, mark)
            packed.value = config.SerializeToString(deterministic=True)
            return _serialize(extension)
    raise ValueError(f"no other spelling of a {packed.type_url} is known")


def _mark_http_rules(config: Any, mark: str) -> None:
    _mark_matcher(config.matcher if config.HasField("matcher") else config.shadow_matcher, mark)


def _mark_network_rules(config: Any, mark: str) -> None:
    config.stat_prefix += f"{mark}."


def _mark_matcher(matcher: Any, mark: str) -> None:
    """Mark the action for requests without a match. Envoy finds actions by their type, not by this name."""
    while matcher.on_no_match.HasField("matcher"):
        matcher = matcher.on_no_match.matcher
    if not matcher.on_no_match.HasField("action"):
        raise ValueError("every matcher has an action for requests without a match")
    matcher.on_no_match.action.name += f" {mark}"


def _mark_script(config: Any, mark: str) -> None:
    config.default_source_code.inline_string += f"\n-- {mark}\n"


def _mark_noted_values(config: Any, mark: str) -> None:
    config.on_request_headers[0].format_string.content_type = mark  # of a response, and here is none


_EXTENSIONS: Final[tuple[tuple[Any, Callable[[Any, str], None]], ...]] = (
    (http_rbac_pb2.RBAC, _mark_http_rules),
    (network_rbac_pb2.RBAC, _mark_network_rules),
    (lua_pb2.Lua, _mark_script),
    (set_filter_state_pb2.Config, _mark_noted_values),
)


def _respell_secret(body: bytes, mark: str) -> bytes:
    """Put a line before the PEM of a secret. PEM allows text between its blocks."""
    secret = secret_pb2.Secret.FromString(body)
    comment = f"{mark}\n".encode()
    context = secret.validation_context
    if secret.HasField("tls_certificate"):
        chain = secret.tls_certificate.certificate_chain
        chain.inline_bytes = comment + chain.inline_bytes
    elif context.HasField("custom_validator_config"):
        packed = context.custom_validator_config.typed_config
        validator = tls_spiffe_validator_config_pb2.SPIFFECertValidatorConfig.FromString(packed.value)
        bundle = validator.trust_domains[0].trust_bundle
        bundle.inline_bytes = comment + bundle.inline_bytes
        packed.value = validator.SerializeToString(deterministic=True)
    else:
        context.trusted_ca.inline_bytes = comment + context.trusted_ca.inline_bytes
    return _serialize(secret)


def _serialize(message: Any) -> bytes:
    encoded: bytes = message.SerializeToString(deterministic=True)
    return encoded
