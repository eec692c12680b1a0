"""Builds expressions that find bytes inside of base64: Envoy has some texts only encoded.

Three bytes become four characters, so bytes look different at each of three offsets, and share their first and last
character with their neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator

_COMMON = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
STANDARD, URL_SAFE = f"{_COMMON}+/", f"{_COMMON}-_"


def bits(data: bytes) -> str:
    """Return bytes as bits. A question mark stands for any bit, eight of them for any byte."""
    return "".join(f"{byte:08b}" for byte in data)


def encodings(data: str, alphabet: str) -> Iterator[list[str]]:
    """Yield how whole bytes, as bits, may be encoded, from the beginning of a group of four characters: for each of the
    three offsets, the characters of which ANY may stand at each position.
    """
    for offset in range(3):
        padded = "?" * 8 * offset + data
        padded += "?" * (-len(padded) % 6)
        sextets = (padded[start : start + 6] for start in range(0, len(padded), 6))
        yield ["".join(alphabet[number] for number in range(64) if _fits(f"{number:06b}", bits)) for bits in sextets]


def _fits(number: str, bits: str) -> bool:
    return all(bit in ("?", digit) for digit, bit in zip(number, bits, strict=True))
