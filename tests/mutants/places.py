"""What is mutated, and which tests must notice: the one list of paths that mutation testing has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "SUBJECTS", "Subject"]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Subject:
    """A package, and the tests that stand for it, the quickest to notice first."""

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
