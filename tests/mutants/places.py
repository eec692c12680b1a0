"""The packages that are mutated, and the tests that must notice. All paths of mutation testing are here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "SUBJECTS", "Subject"]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Subject:
    """A package and the tests that must notice its mutants. The tests that notice fastest come first."""

    package: str
    tests: tuple[str, ...]

    def files(self) -> list[Path]:
        """Return its modules."""
        return sorted((ROOT / "src" / self.package.replace(".", "/")).rglob("*.py"))


SUBJECTS = {
    "ir": Subject(
        "eastgate.ir",
        ("tests/engine", "tests/envoy/plan", "tests/worlds", "tests/test_conformance.py"),
    ),
    "engine": Subject(
        "eastgate.engine",
        (
            "tests/engine",
            "tests/worlds",
            "tests/cli",
            "tests/test_conformance.py",
            "tests/reports",
            "tests/authority/test_public.py",
        ),
    ),
    "symbolic": Subject(
        "eastgate.ir.symbolic", ("tests/ir/symbolic", "tests/engine", "tests/envoy/plan", "tests/reports")
    ),
    "envoy": Subject("eastgate.envoy.plan", ("tests/envoy/plan", "tests/reports")),
    "config": Subject("eastgate.envoy.config", ("tests/envoy/config", "tests/envoy/plan")),
}
