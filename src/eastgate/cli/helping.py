"""The layout of `--help`: examples of each verb, and its options in groups. Only help imports it.

Add each new option to `OPTION_GROUPS`. Examples run in a checkout of the repository, and a test runs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import click

REQUIRED = "Required"
OTHER = "Other"
"""The group of options that `OPTION_GROUPS` does not name."""

_SHOP = "-f examples/shop/manifests"
_TO_CART = "--from sa:shop/web --to pod:shop/cart --port 8080"
_BOOKINFO = "-f examples/bookinfo/app -f examples/bookinfo/authz-http --set istioDataPlane=sidecar"
_REVIEWS = "--from sa:default/bookinfo-productpage --to service:default/reviews --port 9080"

EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "authorizer": (
            f"authorizer {_SHOP} --grpc 127.0.0.1:9191",
            f"authorizer {_SHOP} --http 127.0.0.1:9000 --original --to service:shop/web",
        ),
        "bootstrap": ("bootstrap --node shop/web-0", "bootstrap --node edge/proxy-0 --gateway edge/public -o json"),
        "call": (
            "call --from sa:shop/web --to pod:shop/cart --port 8080",
            "call --from sa:shop/cart --to service:shop/payments --port 443 --method POST --path /v1/charges",
        ),
        "check": (
            f"check {_SHOP} {_TO_CART}",
            f"check {_BOOKINFO} {_REVIEWS} --method GET --path /reviews/1",
        ),
        "completion": ("completion bash", "completion zsh"),
        "controller": ("controller --kubeconfig ~/.kube/config --no-webhooks", "controller --native istio"),
        "convert": (
            f"convert --to istio {_SHOP}",
            f"convert --to istio {_SHOP} --verify --out converted",
        ),
        "crds": ("crds", "crds --kind AuthorizationPolicy -o json", "crds --json-schema --dir schemas"),
        "describe": (
            f"describe pod shop/cart {_SHOP}",
            f"describe policy cart-from-web {_SHOP}",
            "describe pod reviews-v1 --cluster",
        ),
        "diff": (
            "diff examples/shop/manifests examples/shop/manifests",
            f"diff {_SHOP} --without AuthorizationPolicy/shop/cart-from-web",
            "diff --git main.. deploy/policies",
        ),
        "explain": (
            f"explain {_SHOP} {_TO_CART}",
            f"explain {_BOOKINFO} {_REVIEWS} --method GET --path /reviews/1",
        ),
        "get": (f"get policies {_SHOP}", f"get workloads -n shop -o wide {_SHOP}", "get pods -l app=web --cluster"),
        "graph": (f"graph {_SHOP}", f"graph {_SHOP} --to pod:shop/cart --why", f"graph {_SHOP} -o html > shop.html"),
        "inject": ("inject -f examples/shop/manifests", "inject -f deployment.yaml | kubectl apply -f -"),
        "lint": (f"lint {_SHOP}", f"lint {_SHOP} -o sarif > lint.sarif", "lint --cluster --fail-on error"),
        "test": ("test examples/shop", "test -f examples/shop --coverage", "test examples/shop -o junit > report.xml"),
        "up": (f"up {_SHOP}", f"up {_SHOP} --app shop/cart:8080=127.0.0.1:3000"),
        "version": ("version", "version -o json"),
        "why": (f"why {_SHOP} - < examples/shop/proxy.log", "why --last"),
    }
)
"""Commands of each verb, without the name of the program."""

_GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "Caller": "from source-ip forwarded-for plaintext claim token no-token jwks client-certificate",
        "Destination": "to port protocol sni",
        "Request": (
            "method path host header http-protocol mcp-method tool mcp-params mcp-version arguments data raw "
            "external-auth repeat timeout"
        ),
        "Line": "last decision",
        "Input": (
            "filename kustomize environment helm helm-values follow exclude git between with without cluster "
            "kubeconfig context namespace"
        ),
        "Selection": "select ignore selector all-namespaces external kind baseline",
        "Settings": "set config unread strict assume",
        "Output": (
            "help output verbose junit coverage fail-under fail-on denied by why unused all no-headers out dir verify "
            "explain admission json-schema conversion-webhook conversion-ca webhooks write-baseline"
        ),
        "Mesh": "name app network metrics",
        "Identity": (
            "ca spire federate by-address token-issuer token-keys token-audience token-claim tls-certificate tls-key "
            "tls-client-ca sources server-name"
        ),
        "Server": (
            "grpc http admin tools workers threads max-open max-body drain log address replica xds-port "
            "authorizer-port tools-port peers-port webhook-port webhook-client-ca webhook-client-name http-port "
            "debug-port svid-port lease-duration log-format no-webhooks inherit process"
        ),
        "Requests of the proxy": (
            "path-prefix trust-header to-header address-header original all-headers shown-header whole-bodies "
            "normalized-paths"
        ),
        "Proxies": (
            "proxy-image control-plane gateway node no-gateways no-gateway-class native linkerd-status "
            "native-unwritable access-logs decision-log decision-sample decision-sample-denied"
        ),
    }
)

OPTION_GROUPS: Mapping[str, str] = MappingProxyType(
    {f"--{name}": group for group, names in _GROUPS.items() for name in names.split()}
)
"""The group of each option, by its long name."""

_OF_VERB: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        **dict.fromkeys([("graph", f"--{name}") for name in ("from", "to", "port", "tool", "namespace")], "Selection"),
        **dict.fromkeys([(verb, "--namespace") for verb in ("get", "describe")], "Selection"),
        ("authorizer", "--external"): "Server",
        ("authorizer", "--jwks"): "Identity",
        ("authorizer", "--timeout"): "Server",
        ("authorizer", "--to"): "Requests of the proxy",
        ("bootstrap", "--admin"): "Proxies",
        ("bootstrap", "--address"): "Proxies",
        ("bootstrap", "--token"): "Identity",
        ("controller", "--host"): "Server",
        ("up", "--jwks"): "Identity",
        **dict.fromkeys([("why", f"--{name}") for name in ("from", "to")], "Line"),
    }
)
"""The group of an option that has another meaning for one verb."""

_ORDER = (REQUIRED, *_GROUPS, OTHER)


def group_of(verb: str, option: click.Parameter) -> str:
    """Return the group in which the help of a verb shows an option."""
    if option.required:
        return REQUIRED
    name = max(option.opts, key=len)
    return _OF_VERB.get((verb, name)) or OPTION_GROUPS.get(name, OTHER)


def write_examples(verb: str, program: str, formatter: click.HelpFormatter) -> None:
    """Write the examples of a verb. A backslash ends each continued line, so that examples can be pasted."""
    with formatter.section("Examples"):
        for example in EXAMPLES.get(verb, ()):
            indent = " " * formatter.current_indent
            # Keep an option and its value together
            text = f"{program} {example}".replace(" --", "\0--").replace(" -f", "\0-f")
            lines = [""]
            for part in text.split("\0"):
                if lines[-1] and len(indent) * 3 + len(lines[-1]) + len(part) + 3 > formatter.width:
                    lines.append("")
                lines[-1] += f" {part}" if lines[-1] else part
            formatter.write(indent + f" \\\n{indent * 3}".join(lines) + "\n")


def write_options(verb: str, options: Iterable[click.Parameter], ctx: click.Context, to: click.HelpFormatter) -> None:
    """Write options in groups, the required ones first. Dots follow an option that may be repeated."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for option in options:
        record = option.get_help_record(ctx)
        if record is not None and isinstance(option, click.Option):
            names = f"{record[0]} ..." if option.multiple else record[0]
            groups.setdefault(group_of(verb, option), []).append((names, record[1].removesuffix("  [required]")))
    for group in sorted(groups, key=_ORDER.index):
        with to.section(group):
            to.write_dl(groups[group])
