"""Findings about effective policies: surprising merges, and access that they allow by mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import GrpcMatch, RouteMatch, StreamRule, World
from eastgate.cluster.points import RuleNamed
from eastgate.cluster.question import Question
from eastgate.cluster.routing.model import rules_of
from eastgate.dialects.kuadrant.authorino.authorization_json import authorization_json_of
from eastgate.dialects.kuadrant.authorino.authorizer import services_in
from eastgate.dialects.kuadrant.authorino.conditions import all_conditions, evaluate_condition, leaves
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import SAMPLE_HEADERS, RequestFacts, sample_request
from eastgate.dialects.kuadrant.authorino.model import CelPredicate, Condition, MissingPatterns, Scheme
from eastgate.dialects.kuadrant.authorino.outcomes import ERRS, FAILS, Outcomes
from eastgate.dialects.kuadrant.policies import lint_codes as codes
from eastgate.dialects.kuadrant.policies.effective import Effective
from eastgate.dialects.kuadrant.policies.model import Policy, RuleKey
from eastgate.dialects.kuadrant.policies.ways import effective_policies
from eastgate.dialects.kuadrant.schemes import SchemeSection, scheme_from
from eastgate.dialects.kuadrant.schemes.lint import respelt_rules
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.dialects.linting import Context, Finding, enumerated
from eastgate.ir import Shadowing

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD")
_CHECKED = (SchemeSection.AUTHENTICATION, SchemeSection.AUTHORIZATION)
_ATOMIC = (Shadowing.ATOMIC_DEFAULTS, Shadowing.ATOMIC_OVERRIDES)


def find_in_effective(policies: Sequence[Policy], context: Context) -> Iterator[Finding]:
    """Report surprising effective policies.

    Each text is reported once, with the first rule of a route that shows it.
    """
    seen: set[tuple[str, Span | None]] = set()
    for rule, effective in effective_policies(policies, context.world):
        way = _Way.of(rule, effective, context)
        for finding in _findings(way):
            key = (finding.code.id, finding.span)
            if key not in seen:
                seen.add(key)
                yield finding


def _findings(way: _Way) -> Iterator[Finding]:
    yield from _dropped_authentication(way)
    yield from _widened_authentication(way)
    yield from _condition_of_another(way)
    yield from _erring_conditions(way)
    yield from _dangling_references(way)
    yield from _asks_nothing(way)
    sources = way.effective.sources
    yield from respelt_rules([way.scheme], way.subjects(*sources), sources[0].name_span, way.context.settings)


@dataclass(frozen=True, slots=True)
class _Way:
    """A rule of a route with its effective policy, its scheme, and the shortest request that takes the rule."""

    rule: RuleNamed
    effective: Effective
    scheme: Scheme
    context: Context
    facts: RequestFacts

    @classmethod
    def of(cls, rule: RuleNamed, effective: Effective, context: Context) -> _Way:
        namespace = context.settings.section(KuadrantSettings).authorino_namespace
        return cls(rule, effective, scheme_from(effective.nodes, namespace), context, _shortest(rule, context.world))

    def of_section(self, section: SchemeSection) -> dict[RuleKey, Policy]:
        """Return the rules in force in a section, each with its policy."""
        return {key: policy for key, policy in self.effective.rules.items() if key.section == section}

    def allowed(self) -> RequestFacts | None:
        """Return an anonymous request that is allowed, or None."""
        services = services_in(self.context.world, None, authorino_compat=False)
        return next((facts for facts in self.requests() if evaluate(self.scheme, facts, services).allowed), None)

    def requests(self) -> Iterator[RequestFacts]:
        """Yield anonymous requests, with each method."""
        return (replace(self.facts, method=method) for method in _METHODS)

    def example(self, facts: RequestFacts) -> str:
        """Return the command that asks about a request."""
        route = self.rule.route
        to = f"route:{route.namespace}/{route.name}"
        method, host, path = str(facts.method), str(facts.host), str(facts.path)
        question = Question.of("anonymous", to, method=method, host=host, path=path, headers=SAMPLE_HEADERS)
        return self.context.command(question)

    def subjects(self, *policies: Policy) -> tuple[str, ...]:
        """Return the policies and the route, for the subjects of a finding."""
        route = self.rule.route
        return *(str(policy.ref) for policy in policies), f"{route.kind}/{route.namespace}/{route.name}"


def _shortest(rule: RuleNamed, world: World) -> RequestFacts:
    """Return a sample request that takes a rule."""
    route = world.routes[f"{rule.route.kind}/{rule.route.namespace}/{rule.route.name}"]
    spec = rules_of(route)[rule.rule]
    match = spec.matches[0] if not isinstance(spec, StreamRule) and spec.matches else None
    path = "/"
    if isinstance(match, RouteMatch):
        path = match.path.value
    elif isinstance(match, GrpcMatch):
        path = f"/{match.service or 'Service'}/{match.method or 'Method'}"
    host = next(iter(route.hostnames), "example.com").replace("*", "other")
    return sample_request("GET", path, host)


# Surprising merges


def _dropped_authentication(way: _Way) -> Iterator[Finding]:
    if way.of_section(SchemeSection.AUTHENTICATION):
        return
    dropped = [
        rule
        for rule in way.effective.shadowed
        if rule.key.section == SchemeSection.AUTHENTICATION and rule.why in _ATOMIC
    ]
    facts = way.allowed() if dropped else None
    if facts is None:
        return
    rule, names = dropped[0], enumerated([f"`{rule.key.name}`" for rule in dropped])
    source = way.effective.sources[0]
    why = "whose defaults are atomic" if rule.why is Shadowing.ATOMIC_DEFAULTS else "because its overrides are atomic"
    message = f"{source.ref} has no authentication, and drops {names} of {rule.policy.ref}, {why}: {way.rule} is open"
    help_ = "write authentication here as well, or strategy: merge there"
    subjects = way.subjects(source, rule.policy)
    yield Finding(codes.DROPPED_AUTHENTICATION, message, source.name_span, help_, subjects, way.example(facts))


def _widened_authentication(way: _Way) -> Iterator[Finding]:
    entries = way.of_section(SchemeSection.AUTHENTICATION)
    policies = list(dict.fromkeys(policy for policy in way.effective.policies if policy in entries.values()))
    if len(policies) < 2:
        return
    last = policies[-1]
    own = [key for key, policy in entries.items() if policy is last]
    others = enumerated([f"`{key.name}` of {policy.ref}" for key, policy in entries.items() if policy is not last])
    message = (
        f"a caller that `{own[0].name}` of {last.ref} recognizes may be unknown to {others}: one is enough at "
        f"{way.rule}"
    )
    help_ = "give them the same name, so that one replaces the other, or check the caller in authorization"
    subjects = way.subjects(*policies)
    yield Finding(codes.WIDENED_AUTHENTICATION, message, last.rules[own[0]].span, help_, subjects)


def _condition_of_another(way: _Way) -> Iterator[Finding]:
    when = RuleKey(SchemeSection.CONDITIONS, "")
    source = way.effective.rules.get(when)
    if source is None:
        return
    guarded = [
        (key, policy) for section in _CHECKED for key, policy in way.of_section(section).items() if policy is not source
    ]
    if not guarded:
        return
    names = enumerated([f"{key.section} `{key.name}` of {policy.ref}" for key, policy in guarded])
    message = f"if this `when` of {source.ref} does not hold, {names} is skipped as well"
    help_ = "write the condition in the `when` of the intended rules"
    subjects = way.subjects(source, *dict.fromkeys(policy for _, policy in guarded))
    skipped = (facts for facts in way.requests() if _outcomes(way.scheme.when, facts) == FAILS)
    example = next(map(way.example, skipped), None)
    yield Finding(codes.CONDITION_OF_ANOTHER_POLICY, message, source.rules[when].span, help_, subjects, example)


# Errors


def _erring_conditions(way: _Way) -> Iterator[Finding]:
    source = way.effective.rules.get(RuleKey(SchemeSection.CONDITIONS, ""))
    if source is None or way.scheme.when is None:
        return
    for condition in leaves(way.scheme.when):
        if isinstance(condition, CelPredicate) and _outcomes(condition, way.facts) == ERRS:
            message = f"`{condition.text}` errs for a request without the values that it reads: the request is refused"
            help_ = "test that a value exists before it is used: 'name' in request.headers && .."
            subjects, example = way.subjects(source), way.example(way.facts)
            yield Finding(codes.ERRING_CONDITION, message, condition.span, help_, subjects, example)


def _outcomes(condition: Condition | None, facts: RequestFacts) -> Outcomes | None:
    return evaluate_condition(condition, authorization_json_of(facts, ())).outcomes if condition is not None else None


def _dangling_references(way: _Way) -> Iterator[Finding]:
    for condition in all_conditions(way.scheme):
        for leaf in leaves(condition):
            if isinstance(leaf, MissingPatterns):
                message = f"no policy in force at {way.rule} has patterns named `{leaf.name}`"
                help_ = f"write patterns: {{{leaf.name}: {{allOf: [..]}}}}"
                subjects = way.subjects(*way.effective.sources)
                yield Finding(codes.DANGLING_PATTERN_REF, message, leaf.span, help_, subjects)


def _asks_nothing(way: _Way) -> Iterator[Finding]:
    if any(way.of_section(section) for section in _CHECKED):
        return
    if any(rule.key.section == SchemeSection.AUTHENTICATION for rule in way.effective.shadowed):
        return  # an effective policy without authentication is another finding
    source = way.effective.sources[0]
    message = f"{source.ref} has neither authentication nor authorization: every caller is allowed at {way.rule}"
    help_ = "write authentication, or let it be merged with a policy that has some"
    subjects, example = way.subjects(source), way.example(way.facts)
    yield Finding(codes.ASKS_NOTHING, message, source.name_span, help_, subjects, example)
