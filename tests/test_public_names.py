"""The names of the Python API: few, documented, lazily imported, and closed over their own types."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import eastgate
from eastgate import cluster, convert, dialects, ir
from eastgate.dialects import DIALECTS
from eastgate.graph import Edge

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "eastgate"
SHOP = ROOT / "examples" / "shop" / "manifests"
PAGE = "".join(
    (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") for name in ("python-api.md", "python-modules.md")
)
MODULES = ("decisions", "describe", "diff", "graph", "lint", "manifests", "mesh", "tables")
PUBLIC = [eastgate, *(import_module(f"eastgate.{name}") for name in MODULES)]
NAMES = [(module, name) for module in PUBLIC for name in module.__all__ if name != "__version__"]


def test_there_are_thirty_names_and_modules_for_the_rest() -> None:
    assert len(eastgate.__all__) <= 30
    assert set(dir(eastgate)) == set(eastgate.__all__)
    for module in PUBLIC:
        assert module.__all__ == sorted(module.__all__)
    assert len({name for _, name in NAMES}) == len(NAMES)  # each name in one module


def test_packages_are_few_and_loose_modules_are_public() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert len(packages) <= 15
    loose = {path.stem for path in SOURCE.glob("*.py")}
    assert loose == {"__init__", "__main__", "_version", "settings", *MODULES}
    for name in MODULES:  # with names only
        body = ast.parse((SOURCE / f"{name}.py").read_text(encoding="utf-8")).body
        body = [inner for node in body for inner in (node.body if isinstance(node, ast.Try) else [node])]
        assert all(isinstance(node, ast.ImportFrom | ast.Assign | ast.Expr) for node in body)


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_the_page_of_the_api_names_all_that_there_is(module: ModuleType) -> None:
    assert module is eastgate or f"`{module.__name__}`" in PAGE
    assert [name for name in module.__all__ if name != "__version__" and not re.search(rf"\b{name}\b", PAGE)] == []


def test_importing_the_package_imports_nothing_of_it() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    imported = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert imported == ["importlib", "typing", "eastgate._version"]


def test_type_checkers_and_the_runtime_agree_on_the_names() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    aliases = {alias.asname: f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    del aliases["Settings"]  # defined in `settings`, and imported from `dialects`, which brings sections
    assert aliases == {
        name: f"eastgate.{module}.{name}" for name, module in eastgate._MODULES.items() if name != "Settings"
    }


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    for name in ("Nothing", "nothing", "_nothing", "run_lint"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(eastgate, name)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda value: getattr(value, "__name__", value))
def test_a_public_name_says_where_it_is(module: ModuleType, name: str) -> None:
    value = getattr(module, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert (value.__module__, value.__qualname__) == (module.__name__, name)
        assert value.__doc__


@pytest.mark.real
def test_an_error_has_its_public_name_before_that_was_used() -> None:
    code = "import eastgate; eastgate.from_text('kind: Pod')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "\neastgate.ManifestError: error[EG" in done.stderr


# Types: every argument and result is exported, or an object of the cluster or the IR, which have packages

SETTINGS = {name for dialect in DIALECTS if dialect.settings for name in dir(sys.modules[dialect.settings.__module__])}
EXPORTED = {name for module in (*PUBLIC, cluster, convert, dialects, ir) for name in module.__all__}
EXPORTED |= {*SETTINGS, *vars(eastgate.settings), "Attribute", "Unknown", "Point", "RequestParts", "DecidingAuthority"}
# Aliases of builtin and exported types, and of types of joserfc and cryptography
ALIASES = {"Headers", "Labelling", "Networks", "Line", "OnEvent", "_Path", "Key", "Plain", "Roots", "Scalar"}
PLAIN = {*dir(builtins), *ALIASES, "Iterable", "Mapping", "Sequence", "Iterator", "Callable", "Collection", "PathLike"}
PLAIN |= {"Path", "Self", "BinaryIO", "TracebackType", "ClassVar", "SSLContext", "ForwardRef", "timedelta", "S"}
PLAIN |= {"Any", "Unpack", "Certificate", "datetime"}
CONSTRUCTED = {"Authority", "Question", "Settings", "LocalMesh", "MeshOptions", "KnownKeys", "DiscoveredKeys"}


def named_in(annotation: object) -> set[str]:
    """Return the names of types in an annotation: `Type` for `module.Type`."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "object")
    nodes = list(ast.walk(ast.parse(text, mode="eval")))
    modules = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    names = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in modules}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def annotations_of(module: ModuleType, name: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    value = getattr(module, name)
    if inspect.isfunction(value):
        yield name, value.__annotations__
    if not inspect.isclass(value):
        return
    for cls in value.__mro__:
        if not cls.__module__.startswith("eastgate"):
            continue
        for field, annotation in vars(cls).get("__annotations__", {}).items():
            yield field, {field: annotation}
        for member, found in vars(cls).items():
            function = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
            if inspect.isfunction(function):
                yield member, function.__annotations__


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda value: getattr(value, "__name__", value))
def test_annotations_name_only_exported_types(module: ModuleType, name: str) -> None:
    for member, annotated in annotations_of(module, name):
        if member.startswith("_") and (member != "__init__" or name not in CONSTRUCTED):
            continue
        for part, annotation in annotated.items():
            assert named_in(annotation) <= EXPORTED | PLAIN, f"{name}.{member}: {part}"


# Output of a Python console


def shown() -> Iterator[object]:
    authority = eastgate.load(SHOP)
    decision = authority.check("sa:shop/web", "pod:shop/cart", port=8080, method="GET", path="/cart/7")
    new = eastgate.load(SHOP)
    new.update(remove=["AuthorizationPolicy/shop/cart-from-web"])
    graph, report, converted = authority.graph(), authority.diff(new), authority.convert("istio")
    run = eastgate.test(SHOP.parent)
    yield from (authority, authority.world, authority.settings, authority.prepare(decision.question))
    yield from (decision, decision.question, decision.span, decision.trace(), *decision.trace().layers)
    yield from (graph, *graph.nodes.values(), *graph.bundles, *graph.edges, report, *report.changes)
    yield from (each.requests for each in report.changes)
    yield from (run, *run.results, *(result.table for result in run.results), converted, *converted.written)
    yield from (*authority.policies, *map(authority.document_of, (each.ref for each in authority.policies)))
    yield from (*authority.lint(), *authority.get("pods").rows, authority.get("pods"))
    yield from (*authority.describe("pod", "cart"), *authority.describe("pod", "cart")[0].fields)


def test_what_a_console_shows_is_one_short_line() -> None:
    assert [text for text in map(repr, shown()) if len(text) > 120 or "\n" in text] == []


def test_a_repr_describes_its_object() -> None:
    authority = eastgate.load(SHOP)
    assert repr(authority) == "<Authority policies=9 workloads=5>"
    assert repr(authority.policies[0]) == "<AuthorizationPolicy/shop/cart-from-web>"
    assert repr(eastgate.Settings(trust_domain="example.org")) == "Settings(trust_domain='example.org')"
    edge = Edge("sa:shop/web", "pod:shop/cart", 8080, authority.graph().bundles[0])
    assert repr(edge) == "<Edge sa:shop/web -> pod:shop/cart port 8080: allow>"
