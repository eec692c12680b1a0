"""Messages in messages. Bytes are the same for the same content, or every proxy would be sent everything anew."""

from __future__ import annotations

from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message

__all__ = ["packed", "serialized"]


def packed(message: Message) -> Any:
    """The message with its type."""
    found = Any()
    found.Pack(message, deterministic=True)
    return found


def serialized(message: Message) -> bytes:
    """The bytes of a message."""
    return message.SerializeToString(deterministic=True)
