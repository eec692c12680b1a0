"""Partial questions, and the forms of their ends."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import SHOP, Cli

POD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, ports: [{name: metrics, containerPort: 9000}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: PORTS}
---
"""
RULES = """\
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: web, namespace: shop}
spec:
  rules:
  - from: [{source: {principals: ["cluster.local/ns/shop/sa/cart"]}}]
    to: [{operation: {methods: [POST], paths: ["/charge"]}}]
  - from: [{source: {principals: ["cluster.local/ns/shop/sa/any"]}}]
"""
TOKENS = """\
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: jwt, namespace: shop}
spec: {jwtRules: [{issuer: "https://issuer.example", jwksUri: "https://issuer.example/keys"}]}
"""
CLAIMS = """\
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: web, namespace: shop}
spec:
  rules: [{to: [{operation: {methods: [POST]}}], when: [{key: "request.auth.claims[group]", values: [admin]}]}]
"""
RULE = """\
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: web, namespace: shop}
spec: {action: ACTION, rules: [RULE]}
"""
EXAMPLES = SHOP.parents[1]
HTTP = "[{name: http, port: 80, targetPort: 8080}]"
CHARGE = "allowed for POST /charge; denied otherwise (add --method, --path)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def write(folder: Path, policies: str, ports: str = HTTP) -> tuple[str, ...]:
    (folder / "m.yaml").write_text(POD.replace("PORTS", ports) + policies)
    return ("-f", str(folder), "--set", "istioDataPlane=sidecar")


def ask(cli: Cli, manifests: tuple[str, ...], words: str, command: str = "check") -> tuple[int, str]:
    result = cli(command, *manifests, *shlex.split(words))
    return result.exit_code, result.stdout or result.stderr


@pytest.mark.parametrize(
    ("ports", "words", "answer"),
    [
        (HTTP, "--from sa:shop/cart --to service:shop/web", f"DEPENDS  {CHARGE}"),
        (HTTP, "--from sa:shop/cart --to service:shop/web --method POST", "DEPENDS  allowed for /charge; denied other"),
        (HTTP, "--from sa:shop/any --to service:shop/web", "ALLOW  "),
        (HTTP, "--from sa:shop/other --to service:shop/web", "DENY  "),
        ("[{port: 80, targetPort: 8080}]", "--from sa:shop/cart --to service:shop/web", f"DEPENDS  {CHARGE}"),
        ("[{name: grpc-x, port: 80, targetPort: 8080}]", "--from sa:shop/cart --to service:shop/web", "DEPENDS  "),
        ("[{name: tcp-x, port: 80, targetPort: 8080}]", "--from sa:shop/cart --to service:shop/web", "DENY  "),
        ("[{name: mysql, port: 80, targetPort: 8080}]", "--from sa:shop/cart --to pod:shop/web --port 8080", "DENY  "),
        (
            "[{name: tcp-x, appProtocol: http, port: 80, targetPort: 8080}]",
            "--from sa:shop/cart --to service:shop/web",
            "DEPENDS  ",
        ),
        (
            "[{name: http, port: 80, targetPort: 8080}, {name: tcp-x, port: 81, targetPort: 8081}]",
            "--from sa:shop/cart --to service:shop/web",
            "DEPENDS  allowed for port 80 POST /charge; denied otherwise (add --port, --method, --path)",
        ),
    ],
)
def test_all_requests_count_that_a_question_may_mean(
    cli: Cli, folder: Path, ports: str, words: str, answer: str
) -> None:
    status, output = ask(cli, write(folder, RULES, ports), words)
    assert output.startswith(answer)
    assert status == (0 if answer.startswith("ALLOW") else 1)


@pytest.mark.parametrize(
    ("ports", "is_hidden"),
    [
        (HTTP, False),
        ("[{port: 80, targetPort: 8080}]", False),
        ("[{name: tcp-x, port: 80, targetPort: 8080}]", True),
        ("[{name: http, appProtocol: tcp, port: 80, targetPort: 8080}]", True),
    ],
)
@pytest.mark.parametrize("command", ["check", "explain"])
def test_an_allowed_request_to_a_port_that_is_no_http_has_a_note(
    cli: Cli, folder: Path, ports: str, is_hidden: bool, command: str
) -> None:
    asked = "--from sa:shop/cart --to service:shop/web --port 80 --method POST --path /charge"
    status, output = ask(cli, write(folder, RULES, ports), asked, command)
    assert status == 0
    assert ("Istio's proxy sees bytes (ask without --method)" in output) == is_hidden


def test_the_json_of_a_partial_answer_denies_and_has_an_allowed_example(cli: Cli, folder: Path) -> None:
    manifests = write(folder, RULES)
    _, output = ask(cli, manifests, "--from sa:shop/cart --to service:shop/web --port 80 -o json")
    answer = json.loads(output)
    assert answer["verdict"] == "deny"
    example = "--from sa:shop/cart --to service:shop/web --port 80 --method POST --path /charge"
    assert answer["depends"] == {"allow": ["POST /charge"], "deny": ["otherwise"], "example": shlex.split(example)}
    assert ask(cli, manifests, example)[0] == 0


def test_explain_shows_the_rule_that_lacks_only_a_method_with_one_caret(cli: Cli, folder: Path) -> None:
    status, output = ask(cli, write(folder, RULES), "--from sa:shop/cart --to service:shop/web --port 80", "explain")
    assert status == 1
    assert f"\n  {CHARGE}\n" in output
    assert "AuthorizationPolicy/shop/web rule 0 would allow it with --method POST --path /charge:" in output
    assert output.count(" ^") == 1


def test_a_rule_that_denies_other_bytes_than_http_is_described_so(cli: Cli, folder: Path) -> None:
    admin = """---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: no-admin, namespace: shop}
spec: {action: DENY, rules: [{to: [{operation: {paths: [/admin]}}]}]}
"""
    words = "--from sa:shop/cart --to service:shop/web --port 80"
    _, output = ask(cli, write(folder, RULES + admin), words, "explain")
    assert "AuthorizationPolicy/shop/no-admin rule 0 denies connections without HTTP:\n" in output
    _, output = ask(cli, write(folder, RULES + admin), f"{words} --method GET --path /admin", "explain")
    assert "AuthorizationPolicy/shop/no-admin rule 0 denies:\n" in output
    tokens = """---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: jwt, namespace: shop}
spec: {jwtRules: [{issuer: "https://issuer.example", jwksUri: "https://issuer.example/jwks"}]}
"""
    output = ask(cli, write(folder, tokens), words, "explain")[1]
    assert output.startswith("DEPENDS")
    assert "without HTTP" not in output


@pytest.mark.parametrize(
    ("policies", "words", "answer", "status"),
    [
        (TOKENS, "", "DEPENDS  ALLOW without a token; DENY with an invalid one (add --no-token)\n", 1),
        (TOKENS, "--method GET", "DEPENDS  ALLOW without a token; DENY with an invalid one (add --no-token)\n", 1),
        (TOKENS, "--no-token", "ALLOW", 0),
        (TOKENS, "--claim iss=https://issuer.example", "ALLOW", 0),
        (TOKENS, "--no-token --claim sub=x", "error[EG0105]: a request without a token has no claims", 2),
        (
            TOKENS + CLAIMS,
            "",
            "DEPENDS  allowed for POST with claim group=admin; denied otherwise and with an invalid token",
            1,
        ),
        (TOKENS + CLAIMS, "--no-token", "DENY", 1),
    ],
)
def test_a_token_that_a_question_leaves_out_may_be_invalid(
    cli: Cli, folder: Path, policies: str, words: str, answer: str, status: int
) -> None:
    manifests = write(folder, policies)
    asked = f"--from sa:shop/x --to service:shop/web --port 80 {words}"
    given, output = ask(cli, manifests, asked)
    assert output.startswith(answer)
    assert given == status
    if "for example, with" in output:
        example = output.partition("for example, with ")[2].splitlines()[0]
        assert ask(cli, manifests, f"{asked} {example}")[0] == 0


NOBODY, SOMEBODY = (
    f'{{from: [{{source: {{{field}: ["*"]}}}}]}}' for field in ("notRequestPrincipals", "requestPrincipals")
)
ADMIN = """{from: [{source: {notRequestPrincipals: ["*"]}}], to: [{operation: {paths: ["/admin*"]}}]}"""
GROUP = '{when: [{key: "request.auth.claims[group]", notValues: [admin]}]}'
INVALID = "and with an invalid token"


@pytest.mark.parametrize(
    ("action", "rule", "words", "answer"),
    [
        ("DENY", ADMIN, "--method GET --path /admin", f"denied without a token {INVALID}; allowed otherwise"),
        ("DENY", ADMIN, "--method GET", f"denied for /admin* without a token {INVALID}; allowed otherwise"),
        ("DENY", ADMIN, "", f"allowed for HTTP with a valid token, paths except /admin*; denied otherwise {INVALID}"),
        ("DENY", SOMEBODY, "--method GET", f"denied with a valid token {INVALID}; allowed otherwise"),
        ("DENY", SOMEBODY, "", f"allowed for HTTP without a token; denied otherwise {INVALID}"),
        ("ALLOW", NOBODY, "--method GET", f"denied with a valid token {INVALID}; allowed otherwise"),
        ("ALLOW", NOBODY, "", f"allowed for HTTP without a token; denied otherwise {INVALID}"),
        ("ALLOW", SOMEBODY, "", f"allowed for HTTP with a valid token; denied otherwise {INVALID}"),
        ("DENY", GROUP, "--method GET", f"denied without claim group=admin {INVALID}; allowed otherwise"),
        ("DENY", GROUP, "", f"allowed for HTTP with claim group=admin; denied otherwise {INVALID}"),
    ],
)
def test_a_rule_about_tokens_is_described_as_it_is_and_not_the_other_way_round(
    cli: Cli, folder: Path, action: str, rule: str, words: str, answer: str
) -> None:
    manifests = write(folder, TOKENS + RULE.replace("ACTION", action).replace("RULE", rule))
    asked = f"--from sa:shop/x --to service:shop/web --port 80 {words}"
    _, output = ask(cli, manifests, asked)
    assert output.startswith(f"DEPENDS  {answer} (add "), output
    example = output.partition("for example, with ")[2].splitlines()[0]
    assert ask(cli, manifests, f"{asked} {example}")[0] == 0


@pytest.mark.parametrize(
    ("rule", "answer", "example"),
    [
        ('{to: [{operation: {notPaths: ["/public*"]}}]}', "allowed for /public*; denied", "--path /public"),
        (
            "{to: [{operation: {notHosts: [api.example]}}]}",
            "allowed for host api.example; denied",
            "--host api.example",
        ),
        (
            "{to: [{operation: {notMethods: [GET], paths: [/admin]}}]}",
            "allowed for GET, paths except /admin; denied",
            "--method GET",
        ),
        (
            "{from: [{source: {ipBlocks: [10.0.0.0/8]}}]}",
            "denied for source address in 10.0.0.0/8; allowed",
            "--source-ip 203.0.113.7",
        ),
    ],
)
def test_conditions_have_no_negation_of_a_negation_and_examples_are_plain(
    cli: Cli, folder: Path, rule: str, answer: str, example: str
) -> None:
    manifests = write(folder, RULE.replace("ACTION", "DENY").replace("RULE", rule))
    _, output = ask(cli, manifests, "--from sa:shop/x --to service:shop/web --port 80")
    assert output.startswith(f"DEPENDS  {answer}"), output
    assert output.splitlines()[1] == f"  allowed, for example, with {example}"


def test_a_provider_that_the_mesh_does_not_have_is_one_sentence(cli: Cli, folder: Path) -> None:
    policy = RULE.replace("ACTION", "CUSTOM, provider: {name: oidc}").replace("RULE", "{}")
    _, output = ask(cli, write(folder, policy), "--from sa:shop/x --to service:shop/web --port 80 --method GET")
    assert output.startswith("DENY  AuthorizationPolicy/shop/web (the mesh has no valid provider oidc) denies it"), (
        output
    )


def test_rows_of_tables_keep_their_verdicts(cli: Cli, folder: Path) -> None:
    write(folder, TOKENS)
    row = "{from: sa:shop/x, to: pod:shop/web, port: 8080, expect: %s%s}"
    http = ", http: {method: GET, path: /}"
    rows = [row % ("allow", ""), row % ("deny", http), row % ("allow", f"{http}, noToken: true")]
    (folder / "t.test.yaml").write_text(
        "apiVersion: eastgate.dev/v1alpha1\nkind: DecisionTest\nmetadata: {name: t}\nspec:\n"
        f"  manifests: [m.yaml]\n  settings: {{istioDataPlane: sidecar}}\n  cases: [{', '.join(rows)}]\n"
    )
    result = cli("test", str(folder / "t.test.yaml"))
    assert "3 passed, 0 failed" in result.stdout


@pytest.mark.parametrize(
    "words",
    [
        "-n shop --from sa:any --to svc/web --port http",
        "-n shop --from sa/any --to service/web --port 80",
        "--from sa/shop/any --to svc/shop/web --port http",
        "--from serviceaccount/shop/any --to deploy/shop/web --port http",
        "-n shop --from sa:any --to deployment/web --port metrics",
        "--from sa:shop/any --to deploy:shop/web --port 8080",
        "-n shop --from sa:any --to pod/web --port 8080",
    ],
)
def test_kubectls_words_for_ends_and_names_of_ports(cli: Cli, folder: Path, words: str) -> None:
    status, output = ask(cli, write(folder, RULES), words)
    assert output.startswith("ALLOW"), output
    assert status == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("--from sa:any --to svc/shop/web", "write sa:<namespace>/<name>, or give the namespace with -n"),
        ("--from shop/any --to svc/shop/web", "`shop/any` is not a source"),
        ("--from sa:shop/any --to sts/shop/web", "pods of that name have another owner: write pod:shop/web"),
        ("--from sa:shop/any --to svc/shop/web --port htp", "it has http (80)"),
        ("--from sa:shop/any --to deploy/shop/web --port htp", "it has http (8080), metrics (9000)"),
    ],
)
def test_an_end_or_a_port_that_nothing_has_is_an_error_that_says_what_to_write(
    cli: Cli, folder: Path, words: str, error: str
) -> None:
    result = cli("check", *write(folder, RULES), *shlex.split(words))
    assert result.exit_code == 2
    assert error in result.stderr


def test_a_host_is_outside_of_the_cluster_where_no_authconfig_decides_about_hosts(cli: Cli, folder: Path) -> None:
    (folder / "m.yaml").write_text(POD.replace("PORTS", HTTP))
    status, output = ask(cli, ("-f", str(folder)), "--from pod:shop/web --to host:example.com")
    assert (status, output) == (0, "ALLOW  no policy targets host:example.com\n")
    authorino = ("-f", str(EXAMPLES / "authorino" / "manifests"))
    status, output = ask(cli, authorino, "--from anonymous --to host:no-such.example --method GET --path /")
    assert status == 1
    assert output.startswith("DENY  no AuthConfig is for the host")


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("web.shop", "shop/web"),
        ("web.shop.svc", "shop/web"),
        ("WEB.shop.svc.cluster.local.", "shop/web"),
        ("web-0.web.shop.svc.cluster.local", "shop/web"),
        ("unknown.data.svc", "data/unknown"),
        ("web", "NAMESPACE/web"),
    ],
)
def test_a_name_inside_the_cluster_is_no_host_outside(cli: Cli, folder: Path, host: str, service: str) -> None:
    result = cli("check", *write(folder, RULES), "--from", "pod:shop/web", "--to", f"host:{host}")
    assert result.exit_code == 2
    assert f"write --to service:{service}\n" in result.stderr


@pytest.mark.parametrize(
    ("host", "help_"),
    [
        ("10.2.3.4", "write --to ip:10.2.3.4"),
        ("2001:db8::1", "write --to ip:2001:db8::1"),
        ("example.com:8443", "write --to host:example.com --port 8443"),
        ("https://example.com/pay", "write --to host:example.com"),
        ("*.example.com", "write --to host:<name>"),
    ],
)
def test_what_is_no_name_of_a_host_is_an_error_that_helps(cli: Cli, folder: Path, host: str, help_: str) -> None:
    result = cli("check", *write(folder, RULES), "--from", "pod:shop/web", "--to", f"host:{host}")
    assert result.exit_code == 2
    assert f"{help_}\n" in result.stderr


def test_the_address_of_a_service_is_the_service(cli: Cli, folder: Path) -> None:
    manifests = POD.replace("PORTS", HTTP).replace(
        "selector: {app: web}, ports", "clusterIP: 10.96.0.7, selector: {app: web}, ports"
    )
    (folder / "m.yaml").write_text(f"{manifests}{RULES}")
    words = "--from sa:shop/other --port 80 --to"
    status, output = ask(cli, ("-f", str(folder)), f"{words} ip:10.96.0.7")
    assert (status, output) == ask(cli, ("-f", str(folder)), f"{words} service:shop/web")
    assert status == 1


def test_a_denied_tool_call_names_the_tool_and_those_that_the_rule_allows(cli: Cli) -> None:
    agents = ("-f", str(EXAMPLES / "agents" / "manifests"))
    words = (
        "--from sa:agents/support --to gateway:agents/tools --method POST --path /mcp --host tickets.example "
        "--external-auth limits.agents:9000=allow --tool"
    )
    _, output = ask(cli, agents, f"{words} close", "explain")
    assert "missed it: the request calls the tool close, and the rule allows answer or list\n" in output
    _, output = ask(cli, agents, f"{words} answr", "explain")
    assert "(did you mean answer?)" in output
