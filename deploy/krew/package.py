"""Make the archive of the kubectl plugin, reproducibly, and its manifest for krew.

`python deploy/krew/package.py --url URL --output dist`: URL is the future address of the archive.
"""

from __future__ import annotations

import argparse
import gzip
import io
import tarfile
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
ARCHIVE = "kubectl-eastgate.tar.gz"
_FILES = ((FOLDER / "kubectl-eastgate", 0o755), (ROOT / "LICENSE", 0o644))


def archive() -> bytes:
    """Return the archive: the plugin and the license."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as files:
        for path, mode in _FILES:
            entry = tarfile.TarInfo(path.name)
            entry.size, entry.mode = path.stat().st_size, mode
            with path.open("rb") as content:
                files.addfile(entry, content)
    return packed.getvalue()


def manifest(url: str, content: bytes) -> str:
    """Return the manifest for an archive at an address."""
    template = (FOLDER / "eastgate.yaml").read_text(encoding="utf-8").partition("apiVersion:")
    return (template[1] + template[2]).replace("SHA256", sha256(content).hexdigest()).replace("uri: URL", f"uri: {url}")


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="the future address of the archive")
    parser.add_argument("--output", type=Path, default=Path("dist"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    content = archive()
    (options.output / ARCHIVE).write_bytes(content)
    (options.output / "eastgate.yaml").write_text(manifest(options.url, content), encoding="utf-8")


if __name__ == "__main__":
    _main()
