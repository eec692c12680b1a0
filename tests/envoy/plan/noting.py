"""What the script that notes headers and query parameters does, written again from what its comments promise."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

__all__ = ["note_values"]

_ENTRY = re.compile(
    r'^  \{ name = "(.*?)", key = "(.*?)"(, header = true)?(, joint = ".*?")?(?:, most = (\d+))? \},$', re.MULTILINE
)


def note_values(script: str, headers: dict[str, list[str]], state: dict[str, str]) -> None:
    """Note in filter state what the entries of a script say; one without entries does nothing."""
    entries = script.partition("\n}\n")[0]
    found = _ENTRY.findall(entries)
    assert len(found) == entries.count("name ="), "an entry is not understood"
    for name, key, header, joint, most in found:
        values = headers.get(_text(name), []) if header else _parameters(headers[":path"][0], _text(name))
        _note(state, _text(key), values, joint='","' if "044" in joint else joint, most=int(most or 0))


def _text(literal: str) -> str:
    codes = re.sub(rb"\\\\(\d{3})", lambda found: bytes([int(found[1])]), literal.encode())
    return codes.decode()


def _parameters(target: str, name: str) -> list[str]:
    found = []
    for part in filter(None, target.partition("?")[2].split("&")):
        key, _, value = part.partition("=")
        if unquote_plus(key) == name:
            found.append(unquote_plus(value))
    return found


def _note(state: dict[str, str], key: str, values: list[str], *, joint: str, most: int) -> None:
    unclear = any(set(value) & set("\x00\x02\x03") for value in values)
    unclear = unclear or (joint == '","' and any(re.search(r",[^ \t]", value) for value in values))
    if unclear or (most and len(values) > most):
        state[key] = "?"
        return
    state[key] = "=" + "".join(f"\x02{value}\x03" for value in values)
    if most:
        state.update({f"{key}.{index}": value for index, value in enumerate(values)})
