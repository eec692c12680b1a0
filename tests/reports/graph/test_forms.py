"""Every form in which a graph is written can be read by those who read such things, whatever manifests hold."""

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


def test_what_depends_is_never_drawn_as_if_it_were_open() -> None:
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
def test_rules_are_named_where_they_are_asked_for(form: str) -> None:
    graph = graph_of(example("shop"))
    assert "policies.yaml:42" in render(graph, form, why=True)
    if form != "svg":  # where they are in what a pointer shows
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
