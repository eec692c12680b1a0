"""An AuthPolicy is read as written. Other tests use the texts of this file."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import cast

import pytest

from eastgate import dialects
from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import Question
from eastgate.authority.reading import sort_documents
from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import GatewayNamed, Manifest, RouteNamed, WorldObject, interpret
from eastgate.dialects.kuadrant.authorino.model import AnonymousAccess
from eastgate.dialects.kuadrant.proposal import Policy
from eastgate.reading.manifests import read_text
from eastgate.settings import Settings

ROUTE_TARGET = "targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toys}"
GATEWAY_TARGET = "targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: external}"


def policy(name: str, target: str, spec: str, *, created: str = "", audit: bool = False) -> str:
    """Return a policy in the namespace `shop`."""
    stamp = f', creationTimestamp: "{created}"' if created else ""
    mode = ", annotations: {eastgate.dev/mode: audit}" if audit else ""
    head = f"---\napiVersion: apim.kuadrant.io/v1alpha1\nkind: AuthPolicy\nmetadata: {{name: {name}, namespace: shop"
    return f"{head}{stamp}{mode}}}\nspec:\n{indent(target + chr(10) + dedent(spec).strip(), '  ')}\n"


def schemes(*hosts: str, denies: bool = False) -> str:
    """Return a scheme for each list of hosts, which allows every caller or none."""
    nobody = ", authorization: [{name: none, json: {rules: [{selector: a, operator: eq, value: b}]}}]" if denies else ""
    each = ", ".join(f"{{hosts: [{one}], identity: [{{name: all, anonymous: {{}}}}]{nobody}}}" for one in hosts)
    return f"authSchemes: [{each}]"


def gateway(*hostnames: str, name: str = "external", port: int = 80) -> str:
    """Return a Gateway in the namespace `shop`, with a listener for each hostname."""
    each = (
        "\n".join(
            f"  - {{name: l{place}, port: {port}, protocol: HTTP, hostname: {hostname!r}}}"
            for place, hostname in enumerate(hostnames)
        )
        or f"  - {{name: all, port: {port}, protocol: HTTP}}"
    )
    return (
        f"---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: {name}, namespace: shop}}\n"
        f"spec:\n  gatewayClassName: any\n  listeners:\n{each}\n"
    )  # fmt: skip


def route(hostnames: str = "'*.toys.com'", parents: str = "{name: external}", name: str = "toys") -> str:
    """Return a route in the namespace `shop`."""
    return (
        f"---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: {name}, namespace: shop}}\n"
        f"spec:\n  hostnames: [{hostnames}]\n  parentRefs: [{parents}]\n"
        "  rules: [{backendRefs: [{name: toys, port: 80}]}]\n"
    )


def authority(*texts: str) -> Authority:
    """Return an authority for valid manifests."""
    reading = read_text("m.yaml", "".join(texts), positioned=dialects.reads)
    return Authority(sort_documents(reading.documents, Settings(), reading.reporter), Settings())


def ask(of: Authority, to: str, host: str | None, path: str | None = "/", method: str | None = "GET") -> Decision:
    """Return the answer to an anonymous request."""
    return of.decide(Question.of("anonymous", to, host=host, path=path, method=method, headers={}))


def policy_of(text: str) -> Policy:
    """Return the single policy of a text."""
    (document,) = read_text("p.yaml", text, positioned=dialects.reads).documents
    read = dialects.read_policy(document, Settings(), Reporter())
    assert isinstance(read, Policy)
    return read


def object_of(text: str) -> WorldObject:
    """Return the single object of a text."""
    (document,) = read_text("o.yaml", text, positioned=dialects.reads).documents
    found = interpret(cast("Manifest", document), Reporter())
    assert found is not None
    return found


DOCUMENT = """\
apiVersion: apim.kuadrant.io/v1alpha1
kind: AuthPolicy
metadata:
  name: toystore
spec:
  targetRef:
    group: gateway.networking.k8s.io
    kind: HTTPRoute
    name: toystore
  rules:
  - hosts: ["*.toystore.com"]
    methods: ["GET", "POST"]
    paths: ["/admin"]
  authSchemes:
  - hosts: ["admin.toystore.com"]
    identity:
    - name: idp-users
      oidc:
        endpoint: https://my-idp.com/auth/realm
    authorization:
    - name: check-claim
      json:
        rules:
        - selector: auth.identity.group
          operator: eq
          value: allowed-users
"""


def test_the_example_of_the_document_is_read() -> None:
    read = policy_of(DOCUMENT)
    (rule,) = read.rules
    (scheme,) = read.schemes
    assert str(read.ref) == "AuthPolicy/default/toystore"
    assert read.target == RouteNamed("default", "toystore")
    assert (rule.hosts, rule.methods, rule.paths) == (("*.toystore.com",), ("GET", "POST"), ("/admin",))
    assert scheme.hosts == ("admin.toystore.com",)
    assert [one.name for one in scheme.identities] == ["idp-users"]
    assert [one.name for one in scheme.authorizations] == ["check-claim"]
    assert not read.audit
    assert read.created is None


def test_every_part_knows_where_it_is_written() -> None:
    read = policy_of(DOCUMENT)
    assert (read.name_span.line, read.name_span.underlined) == (4, "toystore")
    assert (read.target_span.line, read.target_span.underlined) == (9, "toystore")
    assert [(span.line, span.underlined) for span in read.rules[0].host_spans] == [(11, '"*.toystore.com"')]
    ((scheme, hosts),) = read.scheme_spans
    assert scheme.line == 15
    assert [(span.line, span.underlined) for span in hosts] == [(15, '"admin.toystore.com"')]
    assert [str(origin) for origin in read.origins] == ["AuthPolicy/default/toystore auth scheme 1"]


def test_what_is_not_written_asks_nothing() -> None:
    read = policy_of(policy("p", ROUTE_TARGET, "rules: [{}, {hosts: [a.com]}]\nauthSchemes: []"))
    assert [(rule.hosts, rule.methods, rule.paths) for rule in read.rules] == [
        (None, None, None),
        (("a.com",), None, None),
    ]
    assert read.schemes == ()


def test_a_scheme_looks_for_secrets_in_the_namespace_of_its_policy() -> None:
    (scheme,) = policy_of(policy("p", ROUTE_TARGET, schemes("a.com"))).schemes
    assert scheme.namespace == "shop"
    assert isinstance(scheme.identities[0].method, AnonymousAccess)


@pytest.mark.parametrize("written", ["2024-01-01T00:00:00Z", '"2024-01-01T00:00:00Z"', "2024-01-01T01:00:00+01:00"])
def test_the_creation_time_is_a_moment_however_it_is_written(written: str) -> None:
    times = [created(f"{{name: p, creationTimestamp: {at}}}") for at in (written, "2024-01-01T00:00:00Z")]
    assert times[0] == times[1] != created("{name: p, creationTimestamp: 2024-01-01T00:00:01Z}")


@pytest.mark.parametrize("metadata", ["{name: p}", "{name: p, creationTimestamp: null}"])
def test_without_a_creation_time_there_is_none(metadata: str) -> None:
    assert created(metadata) is None


def created(metadata: str) -> str | None:
    return policy_of(DOCUMENT.replace("\n  name: toystore\nspec", f" {metadata}\nspec")).created


def test_the_target_is_in_the_namespace_of_the_policy_written_or_not() -> None:
    written = GATEWAY_TARGET.replace("external}", "external, namespace: shop}")
    for target in (written, GATEWAY_TARGET):
        read = policy_of(policy("p", target, schemes("a.com")))
        assert read.target == GatewayNamed("shop", "external")
        assert read.targets == (read.target,)


def test_the_annotation_makes_it_an_audit() -> None:
    assert policy_of(policy("p", ROUTE_TARGET, schemes("a.com"), audit=True)).audit
