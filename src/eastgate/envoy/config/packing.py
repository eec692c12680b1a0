"""Serializes messages deterministically: other bytes for the same content would make every proxy reload."""

from __future__ import annotations

from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message


def pack(message: Message) -> Any:
    """Pack a message with its type."""
    packed = Any()
    packed.Pack(message, deterministic=True)
    return packed


def serialize(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)
