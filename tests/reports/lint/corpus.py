"""The corpus: for each code, folders with manifests that provoke it, and with manifests that nearly do.

A manifest that needs settings has them in its first line: `# settings: denyOnly=allow`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from eastgate.authority.authority import Authority
from eastgate.authority.reading import read_manifests
from eastgate.reports.lint import Finding, lint
from eastgate.settings import Settings

HERE = Path(__file__).parent
CASES = sorted(path.name for path in (HERE / "cases").iterdir())

_SETTINGS = re.compile(r"# settings: (\w+)=(\w+)\n")


@cache
def findings(case: str, manifest: str) -> tuple[Finding, ...]:
    """Return all findings in one manifest of a case.

    The working directory must be this folder, for the paths in findings.
    """
    path = Path("cases") / case / manifest
    written = _SETTINGS.match((HERE / path).read_text("utf-8"))
    settings = Settings.from_mapping({written[1]: written[2]}) if written else Settings()
    manifests = read_manifests([path], settings)
    return tuple(lint(Authority(manifests, settings), manifests))
