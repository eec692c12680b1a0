"""Asks SpiceDB servers about permissions over gRPC: `authzed.api.v1.PermissionsService/CheckPermission`.

This file encodes and decodes the two messages field by field, because they are small and fixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from eastgate.dialects.kuadrant.authorino.facts import PermissionAnswer, PermissionQuestion, Unavailable

if TYPE_CHECKING:
    import grpc

_METHOD: Final = "/authzed.api.v1.PermissionsService/CheckPermission"
_LENGTH_DELIMITED: Final = 2  # the field type of values with a length


class SpiceDbClient:
    """Satisfies `PermissionChecker`. `timeout` limits a question, in seconds. A channel is kept for each server."""

    def __init__(self, timeout: float = 3) -> None:
        self._timeout = timeout
        self._channels: dict[tuple[str, bool], grpc.Channel] = {}

    def check(self, question: PermissionQuestion) -> PermissionAnswer:
        """Ask the server. Raises `Unavailable`, whose message contains nothing from the server."""
        import grpc

        call = self._channel(question).unary_unary(_METHOD, bytes, bytes)
        metadata = (("authorization", f"Bearer {question.token}"),) if question.token else ()
        try:
            return read_answer(call(written_question(question), timeout=self._timeout, metadata=metadata))
        except grpc.RpcError as error:
            code = getattr(error, "code", lambda: None)()
            raise Unavailable(f"{question.endpoint} answers {getattr(code, 'name', 'nothing')}") from None
        except ValueError:
            raise Unavailable(f"the answer of {question.endpoint} cannot be read") from None

    def _channel(self, question: PermissionQuestion) -> grpc.Channel:
        import grpc

        key = (question.endpoint, question.insecure)
        channel = self._channels.get(key)
        if channel is None:
            options = (("grpc.enable_http_proxy", 0),)
            if question.insecure:
                channel = grpc.insecure_channel(question.endpoint, options)
            else:
                channel = grpc.secure_channel(question.endpoint, grpc.ssl_channel_credentials(), options)
            channel = self._channels.setdefault(key, channel)
        return channel


# Messages


def written_question(question: PermissionQuestion) -> bytes:
    """Return a CheckPermissionRequest."""
    subject = _field(1, _reference(question.subject))
    return _field(2, _reference(question.resource)) + _field(3, question.permission.encode()) + _field(4, subject)


def _reference(named: tuple[str, str]) -> bytes:
    kind, name = named
    return _field(1, kind.encode()) + _field(2, name.encode())


def _field(number: int, data: bytes) -> bytes:
    return _number(number << 3 | _LENGTH_DELIMITED) + _number(len(data)) + data


def _number(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def read_answer(data: bytes) -> PermissionAnswer:
    """Read a CheckPermissionResponse. Raises ValueError."""
    permissionship, checked_at = 0, ""
    for number, value in _fields(data):
        if number == 1 and isinstance(value, bytes):
            checked_at = next(
                (token.decode() for at, token in _fields(value) if at == 1 and isinstance(token, bytes)), ""
            )
        elif number == 2 and isinstance(value, int):
            permissionship = value
    return PermissionAnswer(permissionship, checked_at)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _read_number(data, at)
        match tag & 7:
            case 0:
                value, at = _read_number(data, at)
                yield tag >> 3, value
            case 2:
                length, at = _read_number(data, at)
                if at + length > len(data):
                    raise ValueError("a field is cut off")
                yield tag >> 3, data[at : at + length]
                at += length
            case 1:
                at += 8
            case 5:
                at += 4
            case _:
                raise ValueError("a field of an unknown type")


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number is cut off")
