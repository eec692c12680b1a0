"""Bytes inside of base64, as expressions: what Envoy only has encoded, it can still look into.

Three bytes become four characters, so that some bytes look different at each of three places, and share their first
and last character with what stands beside them.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["STANDARD", "URL_SAFE", "bits", "places"]

_COMMON = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
STANDARD, URL_SAFE = f"{_COMMON}+/", f"{_COMMON}-_"


def bits(data: bytes) -> str:
    """Bytes as bits. A question mark stands for any bit, eight of them for any byte."""
    return "".join(f"{byte:08b}" for byte in data)


def places(data: str, alphabet: str) -> Iterator[list[str]]:
    """How some bits, which are whole bytes, may be written, from the beginning of a group of four characters: at each
    of the three places, the characters of which ANY may stand there.
    """
    for before in range(3):
        known = "?" * 8 * before + data
        known += "?" * (-len(known) % 6)
        sextets = (known[start : start + 6] for start in range(0, len(known), 6))
        yield ["".join(alphabet[number] for number in range(64) if _fits(f"{number:06b}", bits)) for bits in sextets]


def _fits(number: str, bits: str) -> bool:
    return all(bit in ("?", digit) for digit, bit in zip(number, bits, strict=True))
