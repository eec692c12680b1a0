"""Every output format of a graph is valid, whatever the manifests contain."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re
import xml.etree.ElementTree as ET

import pytest

from eastgate import Authority
from eastgate.reports.graph import FORMATS, GraphSelection, Grouping, render
from tests.reports.graph.world import authority_from, example, graph_of, pod, policy

EXAMPLES = ("shop", "agents", "linkerd", "payment", "toystore")
EVIL = """/a"b<script>alert('x')</script>&amp;]]>|`{}$x;"""


def _evil() -> Authority:
    world = pod("a") + pod("b")
    rule = f"[{{applicationAttributes: {{methods: [GET], paths: [{json.dumps(EVIL)}]}}}}]"
    text = policy("p", "b", rule)
    return authority_from(world + text.replace("  action", "  enforcementLevel: APPLICATION\n  action"))


def _graphs() -> list[tuple[str, Authority]]:
    return [("evil", _evil()), *((name, example(name)) for name in EXAMPLES)]


WORLDS = dict(_graphs())


@pytest.mark.parametrize("why", [False, True])
@pytest.mark.parametrize("by", list(Grouping))
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("form", FORMATS)
def test_every_form_is_well_formed(form: str, name: str, by: Grouping, why: bool) -> None:
    graph = graph_of(WORLDS[name], GraphSelection(denied=True), by, why=why)
    CHECKS[form](render(graph, form, why=why))


def _check_text(text: str) -> None:
    assert text.startswith("FROM")


def _check_json(text: str) -> None:
    assert set(json.loads(text)) == {"nodes", "edges"}


def _check_csv(text: str) -> None:
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows
    assert all(None not in row for row in rows)
    assert {row["verdict"] for row in rows} <= {"allow", "depends", "deny"}


_DOT_QUOTED = r'"(?:[^"\\\n]|\\.)*"'
_DOT_LINE = re.compile(
    rf"digraph \w+ {{|}}|//.*|subgraph {_DOT_QUOTED} {{|(graph|node|edge) \[[^\]]*\];"
    rf"|label={_DOT_QUOTED}; color={_DOT_QUOTED}; fontcolor={_DOT_QUOTED};"
    rf"|{_DOT_QUOTED}( -> {_DOT_QUOTED})? \[(\w+=({_DOT_QUOTED}|\w+)(, )?)+\];"
)


def _check_dot(text: str) -> None:
    for line in text.splitlines():
        assert _DOT_LINE.fullmatch(line.strip()), line
    assert text.count(" {\n") == len(re.findall(r"^ *}$", text, re.MULTILINE))


_MERMAID = r'"[^"<>`|]*"'
_MERMAID_LINE = re.compile(
    rf"flowchart LR|%%.*|subgraph \w+\[{_MERMAID}\]|end|n\d+(\[{_MERMAID}\]|\[\[{_MERMAID}\]\]|\({_MERMAID}\)|"
    rf"{{{{{_MERMAID}}}}})|n\d+ (-->|-\.->|--x)\|{_MERMAID}\| n\d+|n\d+ ==> n\d+"
)


def _check_mermaid(text: str) -> None:
    for line in text.splitlines():
        assert _MERMAID_LINE.fullmatch(line.strip()), line


def _check_svg(text: str) -> None:
    root = ET.fromstring(text)  # noqa: S314 - we wrote it
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert {element.tag.partition("}")[2] for element in root.iter()} <= {
        *("svg", "title", "style", "rect", "text", "path", "g", "circle")
    }
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")


class _Page(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [f"{name}={value}" for name, value in attrs if name in ("src", "href", "action", "srcset")]
        self.links += [name for name, _ in attrs if name.startswith("on")]


def _check_html(text: str) -> None:
    page = _Page()
    page.feed(text)
    assert page.tags.count("script") == 1
    assert page.links == []
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert "http:" not in text
    assert "https:" not in text
    assert "Content-Security-Policy" in text


CHECKS = {
    "text": _check_text,
    "json": _check_json,
    "csv": _check_csv,
    "dot": _check_dot,
    "mermaid": _check_mermaid,
    "svg": _check_svg,
    "html": _check_html,
}


def test_a_conditional_edge_is_never_drawn_as_open() -> None:
    graph = graph_of(example("shop"), GraphSelection(targets=("pod:shop/payments",), port=8443))
    assert "style=dashed" in render(graph, "dot")
    assert 'color="#2e7d32"' not in render(graph, "dot")
    assert re.search(r"n\d+ -\.->\|", render(graph, "mermaid"))
    assert "-->" not in render(graph, "mermaid")
    for picture in (render(graph, "svg"), render(graph, "html")):
        assert 'class="edge depends" data-from' in picture
        assert 'class="edge allow" data-from' not in picture
        assert "POST /v1/charges or GET /v1/charges/*" in picture


@pytest.mark.parametrize("form", ["text", "dot", "mermaid", "svg", "html"])
def test_rules_are_named_on_request(form: str) -> None:
    graph = graph_of(example("shop"))
    assert "policies.yaml:42" in render(graph, form, why=True)
    if form != "svg":  # in SVG they are in tooltips
        assert "policies.yaml:42" not in render(graph_of(example("shop"), why=False), form)


def test_a_dense_graph_is_a_matrix() -> None:
    names = [f"w{number}" for number in range(20)]
    world = "".join(pod(name) for name in names)
    for name in names:
        callers = ", ".join(f"here/{other}" for other in names[:8])
        world += policy(name, name, f"[{{authorizationSource: {{serviceAccounts: [{callers}]}}}}]")
    picture = render(graph_of(authority_from(world)), "svg")
    assert picture.count('class="cell cell-allow') == 8 * 20
    assert '<path class="edge' not in picture


# One node for each workload


BOXES = re.compile(r'<rect[^>]* x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"')


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_workload_is_drawn_once(name: str) -> None:
    picture = render(graph_of(WORLDS[name], why=False), "svg")
    drawn = re.findall(r'<g class="(?:card|chip[^"]*)" data-node="([^"]+)', picture)
    assert len(drawn) == len(set(drawn))
    accounts = {node.account for node in graph_of(WORLDS[name]).nodes.values() if node.account is not None}
    assert not accounts & set(drawn)


@pytest.mark.parametrize("name", EXAMPLES)
def test_cards_and_chips_do_not_overlap(name: str) -> None:
    picture = render(graph_of(WORLDS[name], why=True), "svg", why=True)
    lines = picture.splitlines()
    shapes = [lines[at + 1] for at, line in enumerate(lines) if line.startswith(('<g class="card"', '<g class="chip'))]
    boxes = [tuple(map(float, found.groups())) for found in map(BOXES.search, shapes) if found is not None]
    for number, (x, y, width, height) in enumerate(boxes):
        for left, top, wide, high in boxes[number + 1 :]:
            assert x + width <= left or left + wide <= x or y + height <= top or top + high <= y


def test_an_edge_from_anyone_is_drawn_and_red() -> None:
    graph = graph_of(example("shop"), GraphSelection(), why=False)
    picture = render(graph, "svg")
    edges = re.findall(r'<path class="edge \w+" data-from="([^"]+)" data-to="([^"]+)"( data-open="")?', picture)
    by_start = {(source, bool(is_open)) for source, _, is_open in edges}
    assert ("anyone", True) in by_start
    assert not any(is_open for source, is_open in by_start if source.startswith("pod:"))
    assert 'color="#c62828"' in render(graph, "dot")


def test_a_cell_of_anyone_is_red_in_a_matrix() -> None:
    world = pod("web") + "".join(pod(f"w{n}") for n in range(40))
    for n in range(40):
        accounts = f"[here/w{(n + 1) % 40}, here/w{(n + 2) % 40}]"
        world += policy(f"p{n}", f"w{n}", f"[{{authorizationSource: {{serviceAccounts: {accounts}}}}}]")
    svg = render(graph_of(authority_from(world)), "svg")
    cells = [line for line in svg.splitlines() if "edge-like" in line]
    assert len(cells) > 45  # too many for the eye to follow
    assert {'data-from="anyone"' in line for line in cells if "data-open" in line} == {True}
    assert "from anyone, from outside the namespace" in svg


def test_an_edge_that_leads_back_stays_inside_the_picture() -> None:
    """A chain is longer than there are columns: edges of the last column end at the right side of their cards."""
    world = "".join(pod(f"w{n}") for n in range(14))
    world += "".join(
        policy(f"p{n}", f"w{n}", f"[{{authorizationSource: {{serviceAccounts: [here/w{(n + 1) % 14}]}}}}]")
        for n in range(14)
    )
    svg = render(graph_of(authority_from(world)), "svg")
    view = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    assert view is not None
    paths = [path for path in re.findall(r' d="(M[^"]+)"', svg) if "C" in path]
    xs = [float(number) for path in paths for number in re.findall(r"[MCH ](-?[\d.]+) -?[\d.]+", path)]
    assert len(paths) >= 14
    assert max(xs) <= int(view[1])


def test_numbers_of_a_matrix_fit_into_their_cells() -> None:
    names = [f"w{number}" for number in range(14)]
    world = "".join(pod(name) for name in names)
    for at, name in enumerate(names):
        callers = ", ".join(f"here/{other}" for other in names[:7])
        rules = [
            f"{{authorizationSource: {{serviceAccounts: [{callers}]}}, networkAttributes: {{ports: [{port}]}}}}"
            for port in (1000 + at, 2000 + at)
        ]
        paths = f"{{authorizationSource: {{serviceAccounts: [here/{names[8]}]}}}}"
        world += policy(name, name, f"[{', '.join([*rules, paths])}]")
    picture = render(graph_of(authority_from(world)), "svg")
    cells = re.findall(
        r'<g class="cell [^>]*>.*?<rect rx="3"[^>]* width="([\d.]+)".*?<text[^>]*>([^<]+)</text>', picture
    )
    assert cells
    assert all(len(words) * 5.5 <= float(width) for width, words in cells)


def test_names_are_in_natural_order() -> None:
    world = "".join(pod("a", f"ns{number}") for number in (10, 2, 1))
    graph = graph_of(authority_from(world), why=False)
    page = render(graph, "html")
    assert re.findall(r"<option>(ns\d+)</option>", page) == ["ns1", "ns2", "ns10"]
    assert [bundle.targets for bundle in graph.bundles] == [("pod:ns1/a", "pod:ns2/a", "pod:ns10/a")]


def test_the_table_of_a_page_has_lines_of_files() -> None:
    assert "policies.yaml:42" in render(graph_of(example("shop")), "html")
