"""`why`: lines that real proxies wrote (tests/local/shop.log), explained by the manifests and by a mesh."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import SHOP, Cli
from tests.local.running import up

LOG = Path(__file__).parents[1] / "local" / "shop.log"


def line(*marks: str) -> str:
    """The first line of the log with all of these in it."""
    return next(one for one in LOG.read_text().splitlines() if all(mark in one for mark in marks))


_BY_HEADER = """
{apiVersion: v1, kind: Pod, metadata: {name: payments, namespace: shop, labels: {app: payments}}}
---
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {name: http, namespace: shop}
spec: {port: 8443, podSelector: {matchLabels: {app: payments}}, proxyProtocol: HTTP/1}
---
apiVersion: policy.linkerd.io/v1beta3
kind: HTTPRoute
metadata: {name: beta, namespace: shop}
spec:
  parentRefs: [{group: policy.linkerd.io, kind: Server, name: http}]
  rules: [{matches: [{headers: [{name: x-beta, value: "yes"}]}]}]
---
apiVersion: policy.linkerd.io/v1alpha1
kind: AuthorizationPolicy
metadata: {name: beta, namespace: shop}
spec:
  targetRef: {group: policy.linkerd.io, kind: HTTPRoute, name: beta}
  requiredAuthenticationRefs: [{kind: ServiceAccount, name: cart}]
"""
ALLOWED = line('"connection"', "cart-from-web#0")
DENIED_L4 = line('"denial"', "no-sandbox#0")
ALLOWED_L7 = line('"request"', "payments-api#0")
DENIED_L7 = line('"request"', '"DELETE"')
HANDSHAKE = line('"handshake"', "no_trust_bundle")
NOBODY = line('"denial"', '"peer":"none"')
SLASH = line("encoded-slash")


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHOP, tmp_path / "shop"))


@pytest.mark.parametrize(
    ("written", "expected", "underlined"),
    [
        (ALLOWED, "ALLOWED at 2026-", "14 |       ports: [8080]\n   |              ^^^^^^ port"),
        (
            DENIED_L4,
            "AuthorizationPolicy/shop/no-sandbox rule 0  (shop/policies.yaml:66)",
            "serviceAccounts: [sandbox/*]",
        ),
        (ALLOWED_L7, "payments-api rule 0  (shop/policies.yaml:42)", "paths: [/v1/charges]"),
        (DENIED_L7, "no rule of 2 policies allows it", "^^^^^ wants GET"),
        (NOBODY, "no rule of 3 policies allows it", "wants spiffe://cluster.local/ns/shop/sa/web"),
        (SLASH, "the path has an encoded slash", "refused before any rule (400)"),
    ],
)
def test_a_line_is_explained_with_the_yaml(
    cli: Cli, manifests: Path, written: str, expected: str, underlined: str
) -> None:
    done = cli("why", written, "-f", "shop")
    assert done.exit_code == 0, done.stderr
    assert expected in done.stdout
    assert underlined in done.stdout
    assert "  today: the manifests still say so\n" in done.stdout


def test_a_handshake_is_explained_in_words(cli: Cli, manifests: Path) -> None:
    done = cli("why", HANDSHAKE, "-f", "shop")
    assert done.exit_code == 0
    assert "failed before any policy was asked: its certificate is from a trust domain that" in done.stdout
    assert "the connection came from 127." in done.stdout


@pytest.mark.parametrize(
    "around",
    [
        "[pod/cart-7d4b/envoy] {}",
        "2026-11-15T10:00:00.1Z stdout F {} # tail",
        '{{"other": 1}} {}',
    ],
)
def test_a_line_is_found_in_other_text(cli: Cli, manifests: Path, around: str) -> None:
    assert "cart-from-web rule 0 allows" in cli("why", around.format(ALLOWED), "-f", "shop").stdout


def test_a_line_is_found_as_text_in_another_object(cli: Cli, manifests: Path) -> None:
    wrapped = json.dumps({"log": ALLOWED + "\n", "stream": "stdout"})
    assert "cart-from-web rule 0 allows" in cli("why", wrapped, "-f", "shop").stdout


def test_a_whole_log_is_explained_line_by_line(cli: Cli, manifests: Path) -> None:
    done = cli("why", "-", "-f", "shop", stdin="[2026][warning] envoy says\n" + LOG.read_text())
    assert done.exit_code == 0
    assert done.stdout.count("the log: ") == 9  # one for each call
    assert "left aside 10 lines without a decision" in done.stderr


def test_json_has_the_line_and_what_holds_today(cli: Cli, manifests: Path) -> None:
    data = json.loads(cli("why", "-", "-f", "shop", "-o", "json", stdin=f"{DENIED_L7}\n{HANDSHAKE}\n").stdout)
    first, second = data["lines"]
    assert first["holds"] is True
    assert first["line"]["decision"] == "403:none-of-2"
    assert first["today"]["stage"] == "allow"
    assert first["question"].startswith("sa:shop/cart -> pod:shop/payments port 8443 DELETE")
    assert (second["holds"], second["today"]) == (None, None)


@pytest.mark.parametrize(
    ("written", "old", "new", "expected", "status"),
    [
        (ALLOWED, "ports: [8080]", "ports: [8081]", "it was allowed, and is denied by the manifests of today", 1),
        (DENIED_L4, "name: no-sandbox", "name: no-tests", "the verdict is the same, but another rule decides today "
         "(AuthorizationPolicy/shop/no-sandbox is gone)", 0),
        (DENIED_L4, "values: [back]", "values: [front]", "the verdict is the same, but another rule decides today "
         "(AuthorizationPolicy/shop/no-sandbox does not target it any more)", 0),
        (DENIED_L7, "methods: [GET]", "methods: [GET, DELETE]", "it was denied, and is allowed", 1),
        (ALLOWED_L7, "paths: [/v1/charges]", "paths: [/v1/charge]", "it was allowed, and is denied", 1),
    ],
)  # fmt: skip
def test_a_change_since_the_line_is_reported(
    cli: Cli, manifests: Path, written: str, old: str, new: str, expected: str, status: int
) -> None:
    policies = manifests / "policies.yaml"
    text = policies.read_text()
    assert old in text
    policies.write_text(text.replace(old, new))
    done = cli("why", written, "-f", "shop")
    assert done.exit_code == status
    assert expected in done.stdout


@pytest.mark.parametrize(
    ("written", "code", "help_"),
    [
        ("hello", "EG0112", "give a line that a proxy wrote"),
        (ALLOWED[:-30], "EG0112", "the line is cut off: give the whole line"),
        ('{"eastgate":"request"}', "EG0112", "give the whole line"),
        (line('"connection"', '"decision":"0:none-of-3"'), "EG0113", "find another line with"),
        ("", "EG0112", "pipe a proxy's log"),
        (ALLOWED.replace("shop/cart", "shop/carts"), "EG0103", "give the manifests of that mesh"),
    ],
)
def test_a_line_of_something_else_is_an_error(cli: Cli, manifests: Path, written: str, code: str, help_: str) -> None:
    done = cli("why", "-", "-f", "shop", stdin=written)
    assert done.exit_code == 2
    assert f"error[{code}]" in done.stderr
    assert help_ in done.stderr


def test_an_attribute_that_is_not_in_the_log_is_unknown(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "world.yaml").write_text(_BY_HEADER)
    verdict = "200:AuthorizationPolicy.policy.linkerd.io/shop/beta#0"
    written = json.loads(ALLOWED_L7) | {"workload/application": None, "workload/inbound": verdict}
    done = cli("why", json.dumps(written), "-f", "world.yaml")
    assert done.exit_code == 0
    assert "today: it depends on attributes that are not in the log: header x-beta" in done.stdout


def test_the_query_is_not_in_the_log(cli: Cli, tmp_path: Path) -> None:
    by_query = _BY_HEADER.replace("headers: [{name: x-beta", "queryParams: [{name: beta")
    (tmp_path / "world.yaml").write_text(by_query)
    verdict = "200:AuthorizationPolicy.policy.linkerd.io/shop/beta#0"
    written = json.loads(ALLOWED_L7) | {"workload/application": None, "workload/inbound": verdict}
    done = cli("why", json.dumps(written), "-f", "world.yaml")
    assert "today: it depends on attributes that are not in the log: query parameter beta" in done.stdout


def test_of_a_connection_only_what_was_decided_before_any_request_counts(cli: Cli, manifests: Path) -> None:
    done = cli("why", line('"connection"', "payments-from-cart#0"), "-f", "shop")
    assert "today: the manifests still say so" in done.stdout
    assert "workload/network: allowed" in done.stdout
    assert "workload/application" not in done.stdout


@pytest.mark.real
def test_a_running_mesh_explains_its_own_events(cli: Cli, tmp_path: Path) -> None:
    with up(tmp_path, name="why") as mesh:
        cli("call", "--name", "why", "--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080")
        mesh.until("decided")
        done = cli("why", "--name", "why", mesh.lines[-1])
        assert done.exit_code == 0, done.stderr
        assert "cart-from-web rule 0 allows:\n  --> manifests/policies.yaml:11:5" in done.stdout
        assert json.loads(cli("why", "--name", "why", DENIED_L7, "-o", "json").stdout)["lines"][0]["holds"] is True
    assert "error[EG0110]" in cli("why", "--name", "why", ALLOWED).stderr


@pytest.mark.real
def test_a_running_mesh_knows_its_decisions_by_number(cli: Cli, tmp_path: Path) -> None:
    with up(tmp_path, name="number") as mesh:
        nothing = cli("why", "--name", "number", "--last")
        assert nothing.exit_code == 2
        assert "error[EG0114]: nothing was decided yet" in nothing.stderr
        for caller in ("web", "payments"):
            cli("call", "--name", "number", "--from", f"sa:shop/{caller}", "--to", "pod:shop/cart", "--port", "8080")
        first, second = mesh.until("decided"), mesh.until("decided")
        assert (first["number"], second["number"]) == (1, 2)
        assert "the log: ALLOWED" in cli("why", "--name", "number", "1").stdout
        last = cli("why", "--name", "number", "--last")
        assert (last.exit_code, last.stdout) == (0, cli("why", "--name", "number", "#2").stdout)
        assert "the log: DENIED" in last.stdout
        [data] = json.loads(cli("why", "--name", "number", "2", "-o", "json").stdout)["lines"]
        assert (data["line"]["verdict"], data["holds"]) == ("deny", True)
        missing = cli("why", "--name", "number", "3")
        assert missing.exit_code == 2
        assert "help: there are 1 to 2" in missing.stderr
        assert cli("why", "-f", str(SHOP), "2").exit_code == 2


_SERVER = """
{apiVersion: v1, kind: Pod, metadata: {name: cart, namespace: shop, labels: {app: cart}}}
---
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {name: http, namespace: shop}
spec: {port: 8080, podSelector: {matchLabels: {app: cart}}, proxyProtocol: HTTP/1, accessPolicy: ACCESS}
"""
_ITSELF = "200:default/localhost-which-Linkerd-s-proxy-always-lets-in"
_INSIDE = "200:Server.policy.linkerd.io/shop/http#0"


@pytest.mark.parametrize(
    ("access", "source", "decision"),
    [
        ("deny", "127.64.0.2", _ITSELF),
        ("deny", "127.64.0.3", "403:none-of-1"),
        ("deny", "127.0.0.1", "403:none-of-1"),
        ("cluster-unauthenticated", "127.64.0.3", _INSIDE),
        ("cluster-unauthenticated", "127.0.0.1", "403:none-of-1"),
    ],
)
def test_in_the_log_of_a_mesh_localhost_is_no_particular_caller(
    cli: Cli, tmp_path: Path, access: str, source: str, decision: str
) -> None:
    (tmp_path / "m.yaml").write_text(_SERVER.replace("ACCESS", access))
    written = {
        "eastgate": "request",
        "workload": "shop/cart",
        "port": 8080,
        "peer": "none",
        "source": f"{source}:1",
        "method": "GET",
        "host": "cart",
        "path": "/",
        "status": int(decision[:3]),
        "decision": decision,
        "details": "via_upstream" if decision.startswith("200") else "rbac_access_denied",
    }
    done = cli("why", json.dumps(written), "-f", "m.yaml")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "  today: the manifests still say so\n" in done.stdout
