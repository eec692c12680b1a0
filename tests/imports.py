"""The import contracts: a table lists the imports of each package, and few modules name a dialect."""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class PackagesContract(Contract):
    """A contract that the table has every direct import between packages, every package, and no unused line."""

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


class NamedContract(Contract):
    """The packages of a family are found by a registry: only the listed importers import one of them by its name."""

    type_name = "named"

    family = fields.StringField()
    shared = fields.SetField(subfield=fields.StringField())
    importers = fields.SetField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002
        """Find the imports by name, and importers that have none."""
        shared, importers = ({str(each) for each in set(field)} for field in (self.shared, self.importers))  # type: ignore[call-overload]
        problems, unused = [], set(importers)
        for package in set(_children(graph, str(self.family))) - shared:
            home = f"{self.family}.{package}"
            if not graph.find_children(home):
                continue
            for imported in (home, *graph.find_descendants(home)):
                for importer in graph.find_modules_that_directly_import(imported):
                    listed = {each for each in importers if f"{importer}.".startswith(f"{each}.")}
                    unused -= listed
                    if not listed and "." in importer:  # the root names the settings for type checkers
                        problems.append(f"{importer} -> {imported}")
        problems += [f"{importer} is listed, and imports none by name" for importer in sorted(unused)]
        return ContractCheck(kept=not problems, metadata={"problems": sorted(problems)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """List what is wrong."""
        for problem in check.metadata["problems"]:
            output.print_error(problem)


def _package(module: str, root: str) -> str:
    """Return the package of a module, or an empty text for the root, whose names are imported when needed."""
    return module.removeprefix(f"{root}.").partition(".")[0] if module.startswith(f"{root}.") else ""


def _children(graph: ImportGraph, root: str) -> list[str]:
    return sorted(child.removeprefix(f"{root}.") for child in graph.find_children(root))
