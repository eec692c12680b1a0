"""The script that notes headers and query parameters, written again from the promises of its comments."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

__all__ = ["note_values"]

_ENTRY = re.compile(
    r'^  \{ name = "(.*?)", key = "(.*?)"(, header = true)?(, joint = ".*?")?(?:, most = (\d+), each = "(.*?)")? \},$',
    re.MULTILINE,
)


def note_values(script: str, headers: dict[str, list[str]], state: dict[str, str]) -> None:
    """Note the values for the entries of a script in filter state; one without entries does nothing."""
    entries = script.partition("\n}\n")[0]
    found = _ENTRY.findall(entries)
    assert len(found) == entries.count("name ="), "an entry is not understood"
    for name, key, header, joint, most, each in found:
        values = headers.get(_text(name), []) if header else _parameters(headers[":path"][0], _text(name))
        values = [value.strip(" \t") for value in values] if header else values
        clear = _are_clear(values, is_list="044" in joint)
        state[_text(key)] = "=" + "".join(f"\x02{value}\x03" for value in values) if clear else "?"
        if each:
            few = clear and len(values) <= int(most)
            state[_text(each)] = "=" if few else "?"
            state.update({f"{_text(each)}/{index}": value for index, value in enumerate(values) if few})


def _text(literal: str) -> str:
    codes = re.sub(rb"\\(\d{3})", lambda found: bytes([int(found[1])]), literal.encode())
    return codes.decode()


def _parameters(target: str, name: str) -> list[str]:
    found = []
    for part in filter(None, target.partition("?")[2].split("&")):
        key, _, value = part.partition("=")
        if unquote_plus(key) == name:
            found.append(unquote_plus(value))
    return found


def _are_clear(values: list[str], *, is_list: bool) -> bool:
    """Return whether values are unambiguous: none may be several values that Envoy has joined with commas."""
    if any(set(value) & set("\x00\x02\x03") for value in values):
        return False
    return not is_list or not any(re.search(r",[^ \t]", value) for value in values)
