"""The corpus: each broken manifest, with its diagnostics.

A manifest that needs settings has them in its first line: `# settings: meshMode=ambient`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from eastgate.authority.reading import read_manifests
from eastgate.basics.diagnostics import Diagnostic
from eastgate.settings import Settings

HERE = Path(__file__).parent
MANIFESTS = sorted(
    str(path.relative_to(HERE)) for path in HERE.glob("manifests/*/*") if path.suffix in (".yaml", ".json")
)

_SETTINGS = re.compile(rb"# settings: (\w+)=(\w+)\n")


def expected(manifest: str) -> Path:
    """Return the path of a manifest's golden."""
    return (HERE / manifest).with_suffix(".expected")


@cache
def findings(manifest: str) -> tuple[Diagnostic, ...]:
    """Return all diagnostics of a manifest. The working directory must be this folder, for the paths in them."""
    written = _SETTINGS.match((HERE / manifest).read_bytes())
    settings = Settings.from_mapping({written[1].decode(): written[2].decode()}) if written else Settings()
    return tuple(read_manifests([manifest], settings).reporter)
