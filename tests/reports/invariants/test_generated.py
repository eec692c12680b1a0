"""On generated worlds of every dialect, the results of drawn statements agree with single questions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Authority, Question, Settings
from eastgate.cluster import Pod, PodsAcross, Selector, World
from eastgate.reports.invariants import Statement, StatementFinding, StatementStanding, prove
from eastgate.reports.invariants.model import (
    CallerGroup,
    CallerSelector,
    DestinationSelector,
    Quantifier,
    RequestSelector,
)
from eastgate.settings import DataPlane
from tests.reports.invariants.stating import SPAN, callers, fits, groups, is_meant, statement, to
from tests.worlds import access_generate, generate, kuadrant_generate, linkerd_generate
from tests.worlds.kuadrant_oracle import Call as HttpCall
from tests.worlds.linkerd_oracle import ALL_POLICIES, Manifest
from tests.worlds.test_generated_access import every_call, question
from tests.worlds.test_generated_clusters import authority_of, situations
from tests.worlds.test_generated_kuadrant import accepted

modes = st.sampled_from(Quantifier)


def breaks(stated: Statement, authority: Authority, asked: Question) -> bool:
    """Return whether a question breaks a statement."""
    domain = authority.settings.trust_domain
    meant = is_meant(stated.callers, asked, authority.world, domain, {})
    if not fits(stated.requests, asked) or meant is (stated.mode is Quantifier.ONLY):
        return False
    decision = authority.decide(asked)
    if decision.status == 400:
        return False  # HTTP itself refuses it
    return decision.allowed is (stated.mode is not Quantifier.ALWAYS)


def agrees(finding: StatementFinding, stated: Statement, authority: Authority, asked: Iterable[Question]) -> None:
    if finding.standing is StatementStanding.HOLDS:
        assert [str(each) for each in asked if breaks(stated, authority, each)] == []
    example = finding.counterexample
    assert (example is not None) is (finding.standing is StatementStanding.BROKEN)
    if example is None:
        return
    pod = example.imagined
    more = [each for each in (pod.namespace, pod.pod) if each is not None] if pod is not None else []
    with authority.imagining(more):
        decision = authority.decide(example.question)
        assert decision.verdict == example.verdict
        assert (stated.mode is not Quantifier.ALWAYS) in {decision.allowed, *(allowed for _, allowed in decision.ways)}
        domain = authority.settings.trust_domain
        meant = is_meant(stated.callers, example.question, authority.world, domain, example.labels)
        assert meant is not (stated.mode is Quantifier.ONLY), example
        assert not stated.requests.ports or example.question.port in stated.requests.ports


# GEP-3779

ACCOUNTS = [(namespace, name) for namespace in ("a", "b", "new") for name in ("x", "*")]
selectors = st.builds(Selector.of, generate.labels)
gep_callers = callers(groups(ACCOUNTS, generate.IDENTITIES, st.none() | selectors))
gep_requests = st.builds(
    RequestSelector,
    st.lists(st.sampled_from([*generate.PORTS, 9]), max_size=1).map(lambda ports: dict.fromkeys(ports, SPAN)),
    methods=st.lists(st.sampled_from(generate.METHODS), max_size=1).map(tuple),
    paths=st.lists(st.sampled_from(["/api", "/api/*", "/*"]), max_size=1).map(tuple),
)
new_pods = st.builds(
    Pod,
    st.sampled_from(["a", "b", "elsewhere"]),
    st.just("unforeseen"),
    st.fixed_dictionaries(
        {}, optional={"app": st.sampled_from(["web", "db", "z"]), "tier": st.sampled_from(["1", "z"])}
    ),
    service_account=st.sampled_from(["x", "z"]),
)
SOURCES = ["anonymous", *generate.IDENTITIES, "sa:a/other", "sa:new/other", "sa:a/x", "spiffe://evil/other"]


def questions_to(destination: str) -> Iterator[Question]:
    http = itertools.cycle(itertools.product(generate.METHODS, ["/", "/api", "/api/1", "/x.png"]))
    for source, port in itertools.product(SOURCES, [*generate.PORTS, 9]):
        method, path = next(http)
        yield Question.of(source, destination, port=port, method=method, path=path)


def exists(source: str, world: World) -> bool:
    """Return whether a caller is outside the cluster, or has a pod."""
    pods = {f"sa:{pod.namespace}/{pod.service_account}" for pod in world.workloads.values()}
    return source in ("anonymous", "spiffe://evil/other") or source in pods


@settings(max_examples=150, deadline=None)
@given(situations(), modes, gep_callers, selectors, selectors, gep_requests, new_pods, st.booleans())
def test_statements_about_workloads(
    situation: tuple[list[Manifest], Settings],
    mode: Quantifier,
    meant: CallerSelector,
    pods: Selector,
    namespaces: Selector,
    requests: RequestSelector,
    unforeseen: Pod,
    include_future: bool,
) -> None:
    authority = authority_of(*situation)
    covered = PodsAcross(namespaces, pods)
    stated = statement(mode, meant, to(pods, namespaces), requests, include_future=include_future)
    finding = prove(authority, stated)
    asked = (q for key in authority.world.select(covered) for q in questions_to(f"pod:{key}"))
    agrees(finding, stated, authority, (q for q in asked if include_future or exists(str(q.source), authority.world)))
    if include_future:
        assert finding.standing is not StatementStanding.NOT_PROVEN, finding.why
    if finding.standing is StatementStanding.HOLDS and include_future:
        with authority.imagining([unforeseen]):
            if "unforeseen" in {key.partition("/")[2] for key in authority.world.select(covered)}:
                agrees(finding, stated, authority, questions_to(f"pod:{unforeseen.namespace}/unforeseen"))


@settings(max_examples=60, deadline=None)
@given(situations(), modes, gep_callers, gep_requests, st.data())
def test_statements_about_services(
    situation: tuple[list[Manifest], Settings],
    mode: Quantifier,
    meant: CallerSelector,
    requests: RequestSelector,
    data: st.DataObject,
) -> None:
    manifests, chosen = situation
    pod = data.draw(st.sampled_from([each for each in manifests if each["kind"] == "Pod"]))
    service = data.draw(generate.service("drawn", pod["metadata"]["namespace"]))
    service["spec"]["selector"] = {"app": "web", **pod["metadata"]["labels"]}
    pod["metadata"]["labels"] = service["spec"]["selector"]
    authority = authority_of([*manifests, service], chosen)
    key = f"{pod['metadata']['namespace']}/drawn"
    stated = statement(mode, meant, to(services=(key,)), requests)
    finding = prove(authority, stated)
    asked = questions_to(f"service:{key}")
    agrees(finding, stated, authority, (each for each in asked if each.port in generate.PORTS))
    assert finding.standing is not StatementStanding.NOT_PROVEN or requests.ports, finding.why


# Linkerd

linkerd_callers = callers(
    groups([("n", "x"), ("m", "*"), ("n", "*")], ["spiffe://td/x.west.example.com"], st.none() | st.just(Selector.of()))
)
LINKERD_SOURCES = [
    "anonymous",
    "sa:n/x",
    "sa:m/x",
    "sa:n/other",
    "id:web.west.example.com",
    "spiffe://td/x.west.example.com",
]


@settings(max_examples=60, deadline=None)
@given(
    linkerd_generate.pods,
    linkerd_generate.namespace,
    linkerd_generate.resources,
    st.sampled_from(ALL_POLICIES),
    st.sampled_from(DataPlane),
    modes,
    linkerd_callers,
    st.sampled_from([{}, {"app": "one"}, {"tier": "t"}]),
    st.sampled_from([(), (80,), (7,), (90,)]),
    st.sampled_from([(), ("GET",)]),
)
def test_statements_about_linkerds_mesh(
    pods: list[Manifest],
    namespace: Manifest,
    resources: list[Manifest],
    default: str,
    plane: DataPlane,
    mode: Quantifier,
    meant: CallerSelector,
    labels: dict[str, str],
    ports: tuple[int, ...],
    methods: tuple[str, ...],
) -> None:
    chosen = Settings.from_mapping({"linkerdDefaultPolicy": default, "dataPlane": plane})
    authority = authority_of([namespace, *pods, *resources], chosen)
    selector = Selector.of(labels)
    stated = statement(mode, meant, to(selector), RequestSelector(dict.fromkeys(ports, SPAN), methods=methods))
    asked = (
        Question.of(
            source,
            f"pod:{key}",
            port=port,
            method=method,
            path=path,
            host=host,
            headers={"k": value},
            source_ip=address,
        )
        for key in authority.world.select(PodsAcross(Selector.of(), selector))
        for source, port, (method, path, host, value, address) in itertools.product(
            LINKERD_SOURCES,
            linkerd_generate.PORTS,
            [
                ("GET", "/a", "h", "v", "10.1.2.3"),
                ("POST", "/s/m", "a.h", "w", "8.8.8.8"),
                ("GET", "/ab", "b.h", "v", "fd00::1"),
            ],
        )
    )
    agrees(prove(authority, stated), stated, authority, asked)


# AccessPolicy

access_callers = callers(groups([("n", "x"), ("n", "*"), ("m", "y")], access_generate.IDENTITIES, st.none()))


@settings(max_examples=60, deadline=None)
@given(
    access_generate.policies,
    access_generate.answers,
    st.sampled_from(["deny", "proceed"]),
    modes,
    access_callers,
    st.sampled_from([to(gateways=("n/g",)), to(backends=("n/b1",)), to(backends=("n/b2",))]),
    st.sampled_from(
        [
            RequestSelector(),
            RequestSelector(tools=("add",)),
            RequestSelector(tools=("del",)),
            RequestSelector(mcp_methods=("tools/list",)),
        ]
    ),
)
def test_statements_about_gateways_and_tools(
    policies: list[Manifest],
    answers: dict[str, str],
    unlisted: str,
    mode: Quantifier,
    meant: CallerSelector,
    destinations: DestinationSelector,
    requests: RequestSelector,
) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "unlistedCaller": unlisted})
    authority = authority_of([*access_generate.FIXED, *policies], chosen)
    stated = statement(mode, meant, destinations, requests, external_auth=answers)
    words = "gateway:n/g" if stated.destinations.gateways else f"backend:{stated.destinations.backends[0].key}"
    asked = (question(call, words, answers) for call in every_call("b1"))
    agrees(prove(authority, stated), stated, authority, asked)


# AuthPolicy


@settings(max_examples=40, deadline=None)
@given(
    kuadrant_generate.clusters(),
    kuadrant_generate.calls,
    modes,
    st.sampled_from(
        [RequestSelector(), RequestSelector(hosts=("a.toys.com",)), RequestSelector(methods=("GET",), paths=("/a",))]
    ),
)
def test_statements_about_gateways_with_authorizers(
    manifests: list[Manifest], calls: list[HttpCall], mode: Quantifier, requests: RequestSelector
) -> None:
    authority = authority_of(accepted(manifests), Settings())
    stated = statement(mode, CallerSelector(CallerGroup(anybody=True)), to(gateways=("n/g",)), requests)
    asked = (
        Question.of(
            "anonymous", "gateway:n/g", port=80, method=c.method, path=c.path, host=c.host, headers=dict(c.headers)
        )
        for c in calls
    )
    agrees(prove(authority, stated), stated, authority, (q for q in asked if ":" not in (q.host or "")))
