"""Make the files of a release in a folder: `python deploy/dist.py dist`.

- the wheel and the source distribution
- a single file with Eastgate and its dependencies, for this Python and this platform, made by shiv
- an SBOM of that file, as CycloneDX
- `SHA256SUMS` of all of them

Each step has its own environments, and the last step runs the results. `deploy/constraints.txt` has the versions in the
single file. With the same Python and the same `SOURCE_DATE_EPOCH`, two runs make the same bytes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUMS = "SHA256SUMS"
_FIRST_ZIP_TIME = "315532800"  # 1980-01-01, the earliest possible time of an entry
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_PREAMBLE = f"""\
import sys

if sys.version_info[:2] != {sys.version_info[:2]}:
    sys.exit("error: this file is for Python {_PYTHON}: install Eastgate with pip, or take the file of your Python")
"""


def make(output: Path) -> None:
    """Write all files to a folder, which is created if needed."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="eastgate-dist-") as folder:
        work = Path(folder)
        tools = _environment(work / "tools", *_tools())
        _run(tools / "python", "-m", "build", "--outdir", work / "built", ROOT)
        (wheel,) = (work / "built").glob("*.whl")
        name = "-".join(wheel.name.split("-")[:2])
        constraints = ROOT / "deploy" / "constraints.txt"
        inside = _environment(work / "inside", "--only-binary", ":all:", "--constraint", constraints, wheel)
        made = [output / built.name for built in sorted((work / "built").iterdir())]
        for path in made:
            path.write_bytes((work / "built" / path.name).read_bytes())
        single = f"{name}-py{_PYTHON}-{sysconfig.get_platform()}.pyz"
        made.append(_sbom(tools, inside, output / f"{single}.cdx.json"))
        made.append(_single_file(tools, inside, output / single))
    lines = [f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(made)]
    (output / SUMS).write_text("".join(lines), encoding="ascii")


def check(output: Path) -> None:
    """Run the results: verify the sums, and run `eastgate version` and a question."""
    _run("sha256sum", "--check", "--strict", "--quiet", SUMS, cwd=output)
    (program,) = output.glob("*.pyz")
    with tempfile.TemporaryDirectory(prefix="eastgate-dist-") as folder:
        variables = {"PATH": os.environ["PATH"], "SHIV_ROOT": folder}
        _run(sys.executable, program, "version", env=variables)
        manifests = ROOT / "examples" / "shop" / "manifests"
        question = ["--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080"]
        _run(sys.executable, program, "check", "-f", manifests, *question, env=variables)


def _tools() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [str(requirement) for requirement in project["optional-dependencies"]["dist"]]


def _environment(folder: Path, *installed: str | Path) -> Path:
    """Create an environment with these packages, and return the folder of its programs."""
    venv.create(folder, with_pip=False)
    bin_folder = folder / "bin"
    pip = [sys.executable, "-m", "pip", "--python", bin_folder / "python"]
    _run(*pip, "install", "--quiet", "--disable-pip-version-check", "--no-compile", *installed)
    return bin_folder


def _single_file(tools: Path, inside: Path, output: Path) -> Path:
    (packages,) = inside.parent.glob("lib/python*/site-packages")
    for name in ("RECORD", "direct_url.json"):  # they hold paths of this run, and are not needed
        for written in packages.glob(f"*.dist-info/{name}"):
            written.unlink()
    preamble = inside.parent / "preamble.py"
    preamble.write_text(_PREAMBLE, encoding="utf-8")
    options = ["--reproducible", "--compressed", "--preamble", preamble, "--python", f"/usr/bin/env python{_PYTHON}"]
    _run(tools / "shiv", *options, "--console-script", "eastgate", "--site-packages", packages, "-o", output)
    return output


def _sbom(tools: Path, inside: Path, output: Path) -> Path:
    project = ["--pyproject", ROOT / "pyproject.toml", "--mc-type", "application"]
    _run(tools / "cyclonedx-py", "environment", "--output-reproducible", *project, "-o", output, inside / "python")
    return output


def _run(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    variables = env or {"SOURCE_DATE_EPOCH": _FIRST_ZIP_TIME, **os.environ}
    subprocess.run(command, check=True, cwd=cwd, env=variables)  # noqa: S603 - our own commands


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="the folder to write to")
    output = parser.parse_args().output
    make(output)
    check(output)


if __name__ == "__main__":
    _main()
