"""The import contract of packages: a table says what each may import, and nothing else exists."""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class PackagesContract(Contract):
    """Each direct import between packages is in the table. Every package is in it, and no line of it is unused."""

    type_name = "packages"

    root = fields.StringField()
    may_import = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002
        """Compare the imports of the source with the table."""
        root = str(self.root)
        allowed: dict[str, set[str]] = {}
        for line in list(self.may_import):  # type: ignore[call-overload]  # a field stands for its value
            package, _, others = str(line).partition("->")
            allowed[package.strip()] = set(others.split())
        used: dict[tuple[str, str], list[str]] = {}
        for importer in graph.modules:
            for imported in graph.find_modules_directly_imported_by(importer):
                ends = _package(importer, root), _package(imported, root)
                if all(ends) and ends[0] != ends[1]:
                    used.setdefault(ends, []).append(f"{importer} -> {imported}")
        table = {(package, other) for package, others in allowed.items() for other in others}
        problems = [f"{package} is not in the table" for package in _children(graph, root) if package not in allowed]
        problems += [line for pair in sorted(used) if pair not in table for line in sorted(used[pair])]
        problems += [f"{package} -> {other} is in the table, and unused" for package, other in sorted(table - {*used})]
        return ContractCheck(kept=not problems, metadata={"problems": problems})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """List what is wrong."""
        for problem in check.metadata["problems"]:
            output.print_error(problem)


def _package(module: str, root: str) -> str:
    """Return the package that a module is in; nothing for the root itself, whose names are imported when needed."""
    return module.removeprefix(f"{root}.").partition(".")[0] if module.startswith(f"{root}.") else ""


def _children(graph: ImportGraph, root: str) -> list[str]:
    return sorted(child.removeprefix(f"{root}.") for child in graph.find_children(root))
