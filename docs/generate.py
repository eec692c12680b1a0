"""Write the pages that are made from the code: `make docs`. A test checks that they are up to date."""

from __future__ import annotations

from pathlib import Path

from eastgate.catalogue import CHAPTERS, all_codes

ERRORS = Path(__file__).parent / "errors.md"


def errors_page() -> str:
    """The catalogue of diagnostics."""
    lines = [
        "# Diagnostics",
        "",
        "Every diagnostic has a code, the place that it is about, and where one can be given, what to write instead.",
        "Errors end a command with status 2, because a policy that can't be understood is never ignored. This page is",
        "made from the catalogue in the code (`make docs`).",
    ]
    for chapter, modules in CHAPTERS.items():
        lines += ["", f"## {chapter}", ""]
        for code in all_codes(modules):
            severity = "" if code.severity == "error" else f" ({code.severity})"
            lines += [f"### {code.id}: {code.title}{severity}", "", code.explanation, ""]
        del lines[-1]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    ERRORS.write_text(errors_page(), encoding="utf-8")
