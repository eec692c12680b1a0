"""Data as YAML in which readable text stays readable, and everything else is an escape."""

from __future__ import annotations

import yaml


class PrintableDumper(yaml.SafeDumper):
    """Writes a text with anything in it that is not printable, or could be a command to a CI system, in quotes.

    In quotes there are escapes for all of it, and no line breaks. The library alone would write some of it as it is
    (marks that turn the order of letters around), and would break lines where a `::error::` begins.
    """

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        """Write a text in double quotes, on one line where it needs care."""
        allowed = self.allow_unicode
        self.allow_unicode = allowed and _is_readable(text)
        super().write_double_quoted(text, split and not _needs_care(text))
        self.allow_unicode = allowed


def _string(dumper: PrintableDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if _needs_care(text) else None)


def _needs_care(text: str) -> bool:
    return "::" in text or not _is_readable(text)


def _is_readable(text: str) -> bool:
    return text.isprintable() or text.replace("\n", "").isprintable()


PrintableDumper.add_representer(str, _string)
