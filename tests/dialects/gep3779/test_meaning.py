"""A rule becomes the right predicate. A missing list matches anything, an explicit empty list nothing."""

from __future__ import annotations

import pytest

from eastgate.ir import ALWAYS, NEVER, AccountsOf, And, Is, OneOf, Or, Predicate, Prefix, Suffix
from eastgate.ir.attributes import IDENTITY, METHOD, PATH, PORT
from eastgate.settings import Settings
from tests.dialects.reading import manifest, policy

ALLOW = "targetRefs: [{{kind: Pod, selector: {{}}}}]\naction: ALLOW\n"
ADMIN = "tier: Admin\npriority: 1\naction: ALLOW\n"
L7 = "enforcementLevel: APPLICATION\n"
SPECS = {
    "v1alpha2": ALLOW + "rules: [{rule}]",
    "v1alpha2 L7": ALLOW + L7 + "rules: [{rule}]",
    "v1alpha1": ALLOW + "tcpRules: [{rule}]",
    "x": ALLOW + "enforcementLevel: Network\nrules: [{rule}]",
    "cluster": ADMIN + "rules: [{rule}]",
    "cluster L7": ADMIN + L7 + "rules: [{rule}]",
}


def meaning(form: str, rule: str, settings: Settings | None = None) -> Predicate:
    text = manifest(form.split()[0], SPECS[form].format(rule=rule))
    (one,) = policy(text, settings or Settings()).rules
    return one.when


def sa(namespace: str, name: str, domain: str = "cluster.local") -> str:
    return f"spiffe://{domain}/ns/{namespace}/sa/{name}"


def who(*identities: str) -> Is:
    return Is(IDENTITY, OneOf(frozenset(identities)))


def anyone_of(namespace: str, domain: str = "cluster.local") -> Is:
    return Is(IDENTITY, AccountsOf(domain, namespace))


def ports(*numbers: int) -> Is:
    return Is(PORT, OneOf(frozenset(numbers)))


def all_of(*parts: Predicate) -> And:
    return And(parts)


def any_of(*parts: Predicate) -> Or:
    return Or(parts)


BILLING = "spiffe://other.example/billing"
FOUR = ("v1alpha2", "v1alpha1", "x", "cluster")
LIKE_000 = ("v1alpha2", "cluster")

MEANINGS: list[tuple[str, str, Predicate]] = [
    # ruling 2: an empty rule matches everything
    *((form, "{}", ALWAYS) for form in FOUR),
    # rulings 3 and 4, 000: a missing list matches anything, an empty list nothing
    *((form, "{authorizationSource: {}}", all_of(NEVER)) for form in LIKE_000),
    *((form, "{authorizationSource: {identities: []}}", all_of(NEVER)) for form in LIKE_000),
    *((form, "{authorizationSource: {serviceAccounts: []}}", all_of(NEVER)) for form in LIKE_000),
    *((form, "{authorizationSource: {identities: [], serviceAccounts: []}}", all_of(NEVER)) for form in LIKE_000),
    *((form, "{networkAttributes: {}}", ALWAYS) for form in (*LIKE_000, "x")),
    *((form, "{networkAttributes: {ports: []}}", all_of(ports())) for form in (*LIKE_000, "x")),
    *((form, "{networkAttributes: {ports: [80, 443, 80]}}", all_of(ports(80, 443))) for form in (*LIKE_000, "x")),
    # an empty list beside a filled one changes nothing
    ("v1alpha2", f"{{authorizationSource: {{identities: [{BILLING}], serviceAccounts: []}}}}", all_of(who(BILLING))),
    # service accounts (ruling 6): strings
    ("v1alpha2", "{authorizationSource: {serviceAccounts: [web]}}", all_of(who(sa("shop", "web")))),
    ("v1alpha2", "{authorizationSource: {serviceAccounts: [pay/web]}}", all_of(who(sa("pay", "web")))),
    ("v1alpha2", '{authorizationSource: {serviceAccounts: ["pay/*"]}}', all_of(anyone_of("pay"))),
    ("v1alpha2", "{authorizationSource: {serviceAccounts: [pay/web.v1]}}", all_of(who(sa("pay", "web.v1")))),
    ("cluster", "{authorizationSource: {serviceAccounts: [pay/web]}}", all_of(who(sa("pay", "web")))),
    ("cluster", '{authorizationSource: {serviceAccounts: ["pay/*"]}}', all_of(anyone_of("pay"))),
    # identities OR service accounts
    (
        "v1alpha2",
        f'{{authorizationSource: {{identities: [{BILLING}], serviceAccounts: [web, "pay/*", "ops/*"]}}}}',
        all_of(any_of(who(BILLING, sa("shop", "web")), anyone_of("ops"), anyone_of("pay"))),
    ),
    # a source AND a port
    (
        "v1alpha2",
        "{authorizationSource: {serviceAccounts: [web]}, networkAttributes: {ports: [80]}}",
        all_of(who(sa("shop", "web")), ports(80)),
    ),
    # 001: a missing list matches anything; ANY source and ANY attribute must match
    ("v1alpha1", "{sources: [{serviceAccounts: [pay/web]}]}", all_of(who(sa("pay", "web")))),
    ("v1alpha1", "{sources: [{namespaces: [pay, ops]}]}", all_of(any_of(anyone_of("ops"), anyone_of("pay")))),
    (
        "v1alpha1",
        f"{{sources: [{{identities: [{BILLING}]}}, {{serviceAccounts: [pay/web]}}, {{namespaces: [ops]}}]}}",
        all_of(any_of(who(BILLING, sa("pay", "web")), anyone_of("ops"))),
    ),
    ("v1alpha1", "{attributes: [{ports: [80]}, {ports: [443]}]}", all_of(ports(80, 443))),
    ("v1alpha1", "{attributes: [{ports: []}]}", all_of(ports())),
    ("v1alpha1", "{attributes: [{ports: []}, {ports: [80]}]}", all_of(ports(80))),
    ("v1alpha1", "{attributes: [{}]}", ALWAYS),
    ("v1alpha1", "{attributes: [{ports: [80]}, {}]}", ALWAYS),
    (
        "v1alpha1",
        "{sources: [{namespaces: [pay]}], attributes: [{ports: [80]}]}",
        all_of(anyone_of("pay"), ports(80)),
    ),
    # upstream: `sources: []` matches no caller, without sources any caller matches
    ("x", "{sources: []}", all_of(NEVER)),
    ("x", "{sources: [], networkAttributes: {ports: [80]}}", all_of(NEVER, ports(80))),
    ("x", f"{{sources: [{{type: SPIFFE, spiffe: '{BILLING}'}}]}}", all_of(who(BILLING))),
    ("x", "{sources: [{type: ServiceAccount, serviceAccount: {name: web}}]}", all_of(who(sa("shop", "web")))),
    (
        "x",
        "{sources: [{type: ServiceAccount, serviceAccount: {namespace: pay, name: web}}]}",
        all_of(who(sa("pay", "web"))),
    ),
    ("x", '{sources: [{type: ServiceAccount, serviceAccount: {name: "*"}}]}', all_of(anyone_of("shop"))),
    (
        "x",
        f"{{sources: [{{type: SPIFFE, spiffe: '{BILLING}'}}, "
        '{type: ServiceAccount, serviceAccount: {namespace: pay, name: "*"}}]}',
        all_of(any_of(who(BILLING), anyone_of("pay"))),
    ),
    # L7
    *((form, "{applicationAttributes: {}}", ALWAYS) for form in ("v1alpha2 L7", "cluster L7")),
    ("v1alpha2 L7", "{applicationAttributes: {paths: []}}", all_of(NEVER)),
    ("v1alpha2 L7", "{applicationAttributes: {methods: []}}", all_of(Is(METHOD, OneOf(frozenset())))),
    ("v1alpha2 L7", "{applicationAttributes: {paths: [/api]}}", all_of(Is(PATH, OneOf(frozenset({"/api"}))))),
    ("v1alpha2 L7", "{applicationAttributes: {paths: [/api/*]}}", all_of(Is(PATH, Prefix("/api/")))),
    ("v1alpha2 L7", "{applicationAttributes: {paths: ['*/health']}}", all_of(Is(PATH, Suffix("/health")))),
    ("v1alpha2 L7", "{applicationAttributes: {paths: ['*']}}", all_of(Is(PATH, Prefix("")))),
    (
        "v1alpha2 L7",
        "{applicationAttributes: {paths: [/a, /b, /c/*], methods: [GET, POST]}}",
        all_of(
            any_of(Is(PATH, OneOf(frozenset({"/a", "/b"}))), Is(PATH, Prefix("/c/"))),
            Is(METHOD, OneOf(frozenset({"GET", "POST"}))),
        ),
    ),
    (
        "cluster L7",
        "{authorizationSource: {serviceAccounts: [pay/web]}, networkAttributes: {ports: [80]}, "
        "applicationAttributes: {methods: [GET]}}",
        all_of(who(sa("pay", "web")), ports(80), Is(METHOD, OneOf(frozenset({"GET"})))),
    ),
]


@pytest.mark.parametrize(("form", "rule", "predicate"), MEANINGS)
def test_a_rule_becomes_its_predicate(form: str, rule: str, predicate: Predicate) -> None:
    assert meaning(form, rule) == predicate


@pytest.mark.parametrize(
    ("form", "rule"),
    [
        ("v1alpha2", "{authorizationSource: {serviceAccounts: [web]}}"),
        ("v1alpha1", "{sources: [{serviceAccounts: [shop/web]}]}"),
        ("x", "{sources: [{type: ServiceAccount, serviceAccount: {name: web}}]}"),
        ("cluster", "{authorizationSource: {serviceAccounts: [shop/web]}}"),
    ],
)
def test_service_accounts_are_of_the_trust_domain_of_the_target(form: str, rule: str) -> None:
    assert meaning(form, rule, Settings(trust_domain="prod.example")) == all_of(who(sa("shop", "web", "prod.example")))


@pytest.mark.parametrize(
    ("form", "rule"),
    [
        ("v1alpha2", '{authorizationSource: {serviceAccounts: ["pay/*"]}}'),
        ("v1alpha1", "{sources: [{namespaces: [pay]}]}"),
        ("x", '{sources: [{type: ServiceAccount, serviceAccount: {namespace: pay, name: "*"}}]}'),
    ],
)
def test_a_whole_namespace_is_of_the_trust_domain_of_the_target(form: str, rule: str) -> None:
    settings = Settings(trust_domain="prod.example")
    assert meaning(form, rule, settings) == all_of(anyone_of("pay", "prod.example"))


@pytest.mark.parametrize("form", ["v1alpha2", "x", "cluster"])
def test_policies_with_no_rules_with_an_empty_list_and_with_an_empty_rule_differ(form: str) -> None:
    without, empty, anything = (
        policy(manifest(form, SPECS[form].format(rule="").replace("rules: []", rules)))
        for rules in ("", "rules: []", "rules: [{}]")
    )
    assert without.rules == empty.rules == ()
    assert [rule.when for rule in anything.rules] == [ALWAYS]
