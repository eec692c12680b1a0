"""`why` on lines of Istio's own proxies: the line of YAML that decided, near misses, and agreement of both."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.dialects.istio.log_lines import NONE, as_json, envoy, ztunnel

BOOKINFO = Path(__file__).parents[2] / "examples" / "bookinfo"
HTTP = ("-f", "app", "-f", "authz-http")
_REJECTED = "connection closed due to policy rejection"
_STRICT = """
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: default}
spec: {mtls: {mode: STRICT}}
"""
_DENY = "rbac_access_denied_matched_policy[ns[foo]-policy[deny-method-get]-rule[0]]"
_XFCC = "By=spiffe://cluster.local/ns/default/sa/bookinfo-ratings;Hash=aa;URI=spiffe://cluster.local/ns/{}"


@pytest.fixture(autouse=True)
def _bookinfo(tmp_path: Path) -> None:
    shutil.copytree(BOOKINFO, tmp_path, dirs_exist_ok=True)


def httpbin(details: str = _DENY, **more: str) -> str:
    where = {"authority": "httpbin.foo:8000", "cluster": "inbound|8080||", "local": "10.1.0.7:8080", "path": "/headers"}
    sni = "outbound_.8000_._.httpbin.foo.svc.cluster.local"
    return envoy(details, **{"sni": sni, **where, **more})  # type: ignore[arg-type] # all are texts


# Deciding rules, and near misses


def test_the_rule_that_denied_is_shown_with_its_yaml(cli: Cli) -> None:
    done = cli("why", httpbin(), "-f", "app", "-f", "authz-deny/deny-get.yaml")
    assert done.exit_code == 0, done.stderr
    assert (
        "the log: DENIED at 2026-11-16T09:12:33.123Z by Istio's Envoy for service:foo/httpbin: "
        "AuthorizationPolicy/foo/deny-method-get rule 0\n  today: the manifests still say so\n"
    ) in done.stdout
    assert "  |                                ^^^^^ method" in done.stdout
    assert "the log names" not in done.stdout  # it is shown already


def test_a_miss_is_explained_by_what_the_rules_want(cli: Cli) -> None:
    done = cli("why", envoy(method="DELETE"), *HTTP, "--from", "sa:default/bookinfo-reviews")
    assert "  today: the manifests still say so\n" in done.stdout
    assert "ratings-viewer rule 0 missed it: method is DELETE" in done.stdout
    assert "^^^^^ wants GET" in done.stdout


@pytest.mark.parametrize(
    ("line", "question"),
    [
        (envoy(), "unknown -> service:default/ratings port 9080 GET ratings:9080 /ratings/0"),
        (envoy(sni="-"), "ip:10.1.0.6 -> service:default/ratings port 9080"),
        (f'{envoy()} "{_XFCC.format("default/sa/bookinfo-reviews")}"', "sa:default/bookinfo-reviews -> service:"),
        (as_json(x_forwarded_client_cert=_XFCC.format("a/sa/b")), "sa:a/b -> service:default/ratings port 9080"),
        (f"[pod/ratings-v1-7d4b9-x2x4z/istio-proxy] {envoy()}", "unknown -> pod:default/ratings-v1 port 9080"),
        (envoy(sni="-", authority="httpbin.foo"), "ip:10.1.0.6 -> service:foo/httpbin GET"),
    ],
)
def test_a_line_becomes_its_question(cli: Cli, line: str, question: str) -> None:
    done = cli("why", line, *HTTP, "-f", "authz-deny/allow-path-ip.yaml")
    assert question in done.stdout, done.stdout + done.stderr


def test_addresses_of_pods_identify_both_ends(cli: Cli, tmp_path: Path) -> None:
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": app, "version": "v9"}},
            "spec": {"serviceAccountName": f"bookinfo-{app}"},
            "status": {"podIP": address},
        }
        for name, app, address in (("ratings-1", "ratings", "10.1.0.5"), ("page-1", "productpage", "10.1.0.6"))
    ]
    (tmp_path / "pods.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    done = cli("why", envoy(), *HTTP, "-f", "pods.json")
    assert "pod:default/page-1 -> pod:default/ratings-1 port 9080" in done.stdout
    assert "missed it: identity is spiffe://cluster.local/ns/default/sa/bookinfo-productpage" in done.stdout
    assert "  today: the manifests still say so" in done.stdout
    plaintext = cli("why", envoy(sni="-"), *HTTP, "-f", "pods.json")
    assert "missed it: identity is absent" in plaintext.stdout


def test_who_called_decides_where_the_line_does_not_say_it(cli: Cli) -> None:
    done = cli("why", envoy(), *HTTP)
    assert done.exit_code == 0
    assert "  today: it depends on attributes that are not in the log: identity" in done.stdout


def test_a_connection_is_judged_as_bytes(cli: Cli) -> None:
    sni = "outbound_.9000_._.tcp-echo.foo.svc.cluster.local"
    line = envoy(method="-", cluster="inbound|9000||", local="10.1.0.8:9000", sni=sni)
    done = cli("why", line, "-f", "app", "-f", "authz-tcp/allow-methods.yaml")
    assert "bytes: fields of HTTP do not count" in done.stdout
    assert "  today: the manifests still say so" in done.stdout


def test_a_refused_token_leads_to_those_who_accept_tokens(cli: Cli) -> None:
    files = ("-f", "app", "-f", "authz-jwt/request-authentication.yaml", "-f", "authz-jwt/require-jwt.yaml")
    line = httpbin("jwt_authn_access_denied{Jwt_is_expired}", status="401")
    done = cli("why", line, *files)
    assert done.exit_code == 0
    assert "the token was refused: the token has expired" in done.stdout
    assert "the log may mean RequestAuthentication/foo/jwt-example" in done.stdout
    assert "- {issuer: testing@secure.istio.io" in done.stdout
    gone = cli("why", line, "-f", "app", "-f", "authz-jwt/require-jwt.yaml")
    assert gone.exit_code == 1
    assert "changed since: no RequestAuthentication is in force there" in gone.stdout


def test_plaintext_in_a_strict_mesh_leads_to_the_peer_authentication(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "strict.yaml").write_text(_STRICT)
    line = envoy("filter_chain_not_found", status=0, flags="NR", cluster="-", sni="-", method="-").replace(
        "- filter_chain_not_found", "filter_chain_not_found -"
    )
    done = cli("why", line, "-f", "app", "-f", "strict.yaml", "--to", "pod:default/ratings-v1")
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "  today: the manifests still say so" in done.stdout
    assert "PeerAuthentication/default/strict" in done.stdout
    assert "^^^^^^ " in done.stdout


@pytest.mark.parametrize(
    ("details", "answer"), [("ext_authz_denied", "deny"), ("ext_authz_error", "error")], ids=["denied", "error"]
)
def test_the_answer_of_an_authorizer_is_taken_from_the_line(
    cli: Cli, tmp_path: Path, details: str, answer: str
) -> None:
    mesh = tmp_path / "authz-custom" / "mesh.yaml"
    mesh.write_text(mesh.read_text().replace('"9000"', "9000"))
    done = cli("why", httpbin(details, flags="UAEX"), "-f", "app", "-f", "authz-custom")
    assert "  today: the manifests still say so" in done.stdout
    assert f"ext-authz.foo:9000: {answer}" in done.stdout
    assert "AuthorizationPolicy/foo/ext-authz rule 0 denies" in done.stdout
    allowed = cli("why", httpbin("via_upstream", status="200"), "-f", "app", "-f", "authz-custom")
    assert "  today: the manifests still say so" in allowed.stdout


# ztunnel


def test_ztunnel_decides_by_connections(cli: Cli) -> None:
    line = ztunnel(f"{_REJECTED}: allow policies exist, but none allowed")
    done = cli("why", line, *HTTP, "--set", "istioDataPlane=ambient")
    assert "sa:default/bookinfo-reviews -> pod:default/ratings-v1 port 9080" in done.stdout
    assert "ztunnel does not read methods" in done.stdout
    assert "  today: the manifests still say so" in done.stdout


def test_a_workload_without_that_proxy_is_reported(cli: Cli) -> None:
    line = ztunnel(f"{_REJECTED}: allow policies exist, but none allowed")
    done = cli("why", line, *HTTP)
    assert done.exit_code == 0
    assert "by the manifests ztunnel enforces nothing there" in done.stdout
    assert "istioDataPlane" in done.stdout


# Waypoints and gateways

_AMBIENT = """
apiVersion: v1
kind: Namespace
metadata: {name: mesh, labels: {istio.io/dataplane-mode: ambient, istio.io/use-waypoint: way}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: way, namespace: mesh}
spec: {gatewayClassName: istio-waypoint, listeners: [{name: mesh, port: 15008, protocol: HBONE}]}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: mesh}
spec: {selector: {app: cart}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: mesh, labels: {app: cart}}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: reads, namespace: mesh}
spec:
  targetRefs: [{kind: Service, group: "", name: cart}]
  rules: [{to: [{operation: {methods: [GET]}}]}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: through-the-waypoint, namespace: mesh}
spec:
  selector: {matchLabels: {app: cart}}
  rules: [{from: [{source: {principals: [cluster.local/ns/mesh/sa/way]}}]}]
"""


def test_a_waypoint_decides_by_its_own_policies(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ambient.yaml").write_text(_AMBIENT)
    line = envoy(method="PUT", cluster="inbound-vip|80|http|cart.mesh.svc.cluster.local", local="10.96.0.9:80", sni="-")
    done = cli("why", line, "-f", "ambient.yaml")
    assert "service:mesh/cart port 80 PUT" in done.stdout
    assert "  today: the manifests still say so" in done.stdout
    assert "AuthorizationPolicy/mesh/reads rule 0 missed it: method is PUT" in done.stdout
    assert "istio ztunnel" not in done.stdout


@pytest.mark.parametrize("to", [(), ("--to", "gateway:foo/httpbin-gateway")], ids=["by host", "given"])
def test_a_gateway_is_found_by_the_host_that_it_takes(cli: Cli, to: tuple[str, ...]) -> None:
    policy = "ns[foo]-policy[ingress-policy]-rule[0]"
    line = envoy(
        f"rbac_access_denied_matched_policy[{policy}]",
        authority="shop.example",
        cluster="outbound|8000||httpbin.foo.svc.cluster.local",
        local="10.1.0.9:80",
        remote="203.0.113.9:41234",
        sni="-",
    )
    done = cli("why", line, "-f", "app", "-f", "authz-ingress/allow-addresses.yaml", *to)
    assert "ip:203.0.113.9 -> gateway:foo/httpbin-gateway" in done.stdout, done.stdout + done.stderr
    assert "gateway/istio gateway: denied" in done.stdout


# Changes


@pytest.mark.parametrize(
    ("line", "files", "words", "status"),
    [
        (
            httpbin(),
            ("-f", "app", "-f", "authz-deny/allow-path-ip.yaml"),
            "another rule decides today (no manifest has AuthorizationPolicy/foo/deny-method-get)",
            0,
        ),
        (
            httpbin(_DENY.replace("rule[0]", "rule[7]"), method="PUT"),
            ("-f", "app", "-f", "authz-deny/deny-get.yaml"),
            "and is allowed by the manifests of today (AuthorizationPolicy/foo/deny-method-get has no rule 7 any more)",
            1,
        ),
        (
            httpbin("via_upstream", status="200"),
            ("-f", "app", "-f", "authz-deny/deny-get.yaml"),
            "it was allowed, and is denied by the manifests of today",
            1,
        ),
    ],
)
def test_a_difference_is_reported(cli: Cli, line: str, files: tuple[str, ...], words: str, status: int) -> None:
    done = cli("why", line, *files)
    assert (done.exit_code, words in done.stdout) == (status, True), done.stdout


def test_of_several_rules_that_deny_a_proxy_names_any(cli: Cli, tmp_path: Path) -> None:
    more = (tmp_path / "authz-deny" / "deny-get.yaml").read_text().replace("deny-method-get", "a-deny")
    (tmp_path / "authz-deny" / "more.yaml").write_text(more)
    done = cli("why", httpbin(), "-f", "app", "-f", "authz-deny/deny-get.yaml", "-f", "authz-deny/more.yaml")
    assert "  today: the manifests still say so" in done.stdout
    assert "the log names AuthorizationPolicy/foo/deny-method-get rule 0:" in done.stdout


# The command


def test_the_name_alone_leads_to_the_rule(cli: Cli) -> None:
    done = cli("why", _DENY, "-f", "app", "-f", "authz-deny/deny-get.yaml")
    assert done.exit_code == 0
    assert (
        "the log names AuthorizationPolicy/foo/deny-method-get rule 0:\n  --> authz-deny/deny-get.yaml:9:5"
        in done.stdout
    )
    missing = cli("why", _DENY, "-f", "app")
    assert "no manifest has AuthorizationPolicy/foo/deny-method-get" in missing.stdout


def test_a_whole_log_is_explained_line_by_line(cli: Cli) -> None:
    sent = envoy("via_upstream", cluster="outbound|9080||a.b.svc.cluster.local")
    log = f"2026-11-16T09:12:33Z\tinfo\tFLAG: --concurrency\n{envoy(method='DELETE')}\n{sent}\n{envoy(method='PUT')}\n"
    done = cli("why", "-", *HTTP, stdin=log)
    assert done.exit_code == 0
    assert done.stdout.count("the log: DENIED") == 2
    assert "left aside 2 lines without a decision" in done.stderr


def test_lines_that_cannot_be_located_are_named_after_the_others(cli: Cli) -> None:
    elsewhere = envoy(sni="-", authority="nobody", local="10.9.9.9:80")
    done = cli("why", "-", *HTTP, stdin=f"{elsewhere}\n{envoy(method='PUT')}\n")
    assert done.exit_code == 2
    assert done.stdout.count("the log: DENIED") == 1
    assert "error[EG0103]: no manifest declares the destination at 10.9.9.9" in done.stderr
    assert "--to pod:<namespace>/<name>" in done.stderr
    alone = cli("why", elsewhere, *HTTP, "-o", "json")
    assert (alone.exit_code, json.loads(alone.stdout)["diagnostics"][0]["code"]) == (2, "EG0103")


def test_json_has_the_line_and_what_holds_today(cli: Cli) -> None:
    done = cli("why", "-", "-f", "app", "-f", "authz-deny/deny-get.yaml", "-o", "json", stdin=f"{httpbin()}\n{_DENY}\n")
    first, second = json.loads(done.stdout)["lines"]
    assert first["line"]["policy"] == "AuthorizationPolicy/foo/deny-method-get"
    assert (first["holds"], first["line"]["verdict"], first["today"]["stage"]) == (True, "deny", "deny")
    assert (second["holds"], second["today"]) == (None, None)
    assert second["line"]["origins"] == [
        {"policy": "AuthorizationPolicy/foo/deny-method-get", "rule": 0, "file": "authz-deny/deny-get.yaml", "line": 9}
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((NONE, "-f", "app"), "error[EG2153]"),
        (("RBAC: access denied", "-f", "app"), "error[EG2152]"),
        ((envoy(),), "give them with -f"),
        (('{"eastgate": "request"}', "-f", "app", "--from", "sa:a/b"), "--from and --to are for lines of Istio's"),
        (("hello", "-f", "app"), "error[EG0112]"),
    ],
)
def test_what_cannot_be_explained_says_why(cli: Cli, words: tuple[str, ...], message: str) -> None:
    done = cli("why", *words)
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
