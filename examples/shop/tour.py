"""The tour of a small shop: questions, verdicts, who decided; and one explanation in full. Run by `make demo`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import eastgate
from eastgate import Question

HERE = Path(__file__).parent

TOUR = [
    ("The web front uses the cart", Question("sa:shop/web", "pod:shop/cart", 8080), "allow"),
    ("… by the Service, whose port 80 leads to 8080", Question("sa:shop/web", "service:shop/cart", 80), "allow"),
    ("… but not on its metrics port", Question("sa:shop/web", "pod:shop/cart", 9090), "deny"),
    ("A client without identity is nobody", Question("anonymous", "pod:shop/cart", 8080), "deny"),
    ("Same account name, another namespace", Question("sa:sandbox/web", "pod:shop/cart", 8080), "deny"),
    (
        "Same path, another trust domain",
        Question("spiffe://evil.example/ns/shop/sa/web", "pod:shop/cart", 8080),
        "deny",
    ),
    ("The cart charges a card", Question("sa:shop/cart", "pod:shop/payments", 8443, "POST", "/v1/charges"), "allow"),
    (
        "… and may not delete the charge",
        Question("sa:shop/cart", "pod:shop/payments", 8443, "DELETE", "/v1/charges/7"),
        "deny",
    ),
    ("The web front may not reach payments", Question("sa:shop/web", "pod:shop/payments", 8443), "deny"),
    (
        "A partner looks up a charge",
        Question("spiffe://partner.example/ns/shop/sa/settlement", "pod:shop/payments", 8443, "GET", "/v1/charges/7"),
        "allow",
    ),
    (
        "… with a path that tries to climb out",
        Question(
            "spiffe://partner.example/ns/shop/sa/settlement", "pod:shop/payments", 8443, "GET", "/v1/charges/../admin"
        ),
        "deny",
    ),
    (
        "Prometheus reads metrics, whatever the team says",
        Question("sa:monitoring/prometheus", "pod:shop/cart", 9090),
        "allow",
    ),
    ("… but not card data", Question("sa:monitoring/prometheus", "pod:shop/payments", 8443), "deny"),
    ("The sandbox is kept out", Question("pod:sandbox/experiments", "pod:shop/cart", 8080), "deny"),
    ("… by the baseline where no policy is", Question("pod:sandbox/experiments", "pod:shop/web", 8080), "deny"),
    ("Everyone else may see the web front", Question("anonymous", "pod:shop/web", 8080), "allow"),
]


def main() -> int:
    """Ask all questions; tell how many answers are not as expected."""
    console = Console()
    console.width = max(console.width, 104)
    authority = eastgate.load(os.path.relpath(HERE / "manifests"))
    console.print(
        f"[bold]eastgate[/bold] {eastgate.__version__}: {len(authority.world.workloads)} workloads, "
        f"{len(authority.policies)} policies in {HERE.name}/manifests\n"
    )
    table = Table(box=None, pad_edge=False)
    for title in ("question", "verdict", "decided by", "line"):
        table.add_column(title, overflow="fold")
    wrong = 0
    for title, question, expected in TOUR:
        decision = authority.decide(question)
        wrong += decision.verdict != expected
        color = "green" if decision.allowed else "red"
        span = decision.span
        where = f"{Path(span.file).name}:{span.line}" if span else ""
        policy = decision.policy.partition("/")[2] if decision.policy else "no rule"
        table.add_row(title, f"[{color}]{decision.verdict}[/{color}]", policy, where)
    console.print(table)
    console.print(
        "\n[bold]One of them in full:[/bold] eastgate explain -f examples/shop/manifests "
        "--from sa:shop/cart --to pod:shop/payments --port 8443 --method DELETE --path /v1/charges/7\n",
        highlight=False,
    )
    print(eastgate.explain(authority.decide(TOUR[7][1]), color=console.is_terminal and not console.no_color))
    print(f"\n{len(TOUR) - wrong} of {len(TOUR)} answers as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
