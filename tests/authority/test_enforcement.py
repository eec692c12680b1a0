"""Enforcers of policies at a Gateway: Eastgate's proxies at those of its class, and other proxies at others."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate import load
from eastgate.authority.questions import Question
from eastgate.settings import Settings, Sidecars

EXAMPLE = Path(__file__).parents[2] / "examples" / "payment" / "manifests"


@pytest.mark.parametrize(
    ("gateway_class", "by", "certain"),
    [("eastgate", "its eastgate proxies", True), ("other", "the controller of GatewayClass other", False)],
)
def test_the_class_of_a_gateway_names_the_enforcer(gateway_class: str, by: str, certain: bool, tmp_path: Path) -> None:
    for file in EXAMPLE.glob("*.yaml"):
        text = file.read_text("utf-8").replace("gatewayClassName: agentic", f"gatewayClassName: {gateway_class}")
        (tmp_path / file.name).write_text(text, "utf-8")
    question = Question.of("anonymous", "gateway:prod/prod-gateway", port=443, method="POST", path="/mcp")
    live = load(tmp_path, settings=Settings(sidecars=Sidecars.ACTUAL)).decide(question)
    (enforcement,) = live.enforcement
    assert (enforcement.at, enforcement.by, enforcement.certain) == ("Gateway prod/prod-gateway", by, certain)
    offline = load(tmp_path).decide(question)
    assert (offline.enforcement, offline.allowed) == ((), live.allowed)
