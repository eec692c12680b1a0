"""Short forms for policies and rules in tests of proxies."""

from __future__ import annotations

from collections.abc import Mapping

from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.cluster import Selector
from eastgate.dialects.istio.model import (
    GROUP,
    JwtRule,
    MtlsMode,
    MtlsPort,
    PeerAuthentication,
    PolicyTarget,
    RequestAuthentication,
)
from eastgate.dialects.istio.written import Fields, IstioRule, Values, When, WrittenValue
from eastgate.ir import Computed, Known, Predicate
from eastgate.ir.attributes import Attribute
from eastgate.ir.provenance import Origin, PolicyRef

ROOT = "istio-system"
SPAN = Span(SourceText("policy.yaml", "policy"), 1, 1, 1, 2)


def peers(text: str) -> list[PeerAuthentication]:
    """Return policies like `mesh STRICT; namespace UNSET; workload UNSET 80=DISABLE`, some with `@<time>`."""
    return [_peer(part.split(), index) for index, part in enumerate(text.split(";")) if part.strip()]


def _peer(words: list[str], index: int) -> PeerAuthentication:
    level, mode, *more = words
    created = next((word[1:] for word in more if word.startswith("@")), None)
    ports = [word.split("=") for word in more if "=" in word]
    of_mesh = level in ("mesh", "mesh-workload")
    selects = level in ("workload", "mesh-workload")
    return PeerAuthentication(
        ref=PolicyRef("PeerAuthentication", ROOT if of_mesh else "app", f"{level}-{index}", GROUP),
        span=SPAN,
        selector=Selector.of({"app": "web"}) if selects else Selector.of(),
        in_root=of_mesh,
        created=created,
        mode=MtlsMode(mode),
        mode_span=SPAN,
        ports=tuple(MtlsPort(int(port), MtlsMode(of), SPAN) for port, of in ports),
        has_selector=selects,
    )


def tokens_policy(name: str, *rules: JwtRule, refs: tuple[PolicyTarget, ...] = ()) -> RequestAuthentication:
    """Return a RequestAuthentication of the namespace `app`."""
    ref = PolicyRef("RequestAuthentication", "app", name, GROUP)
    return RequestAuthentication(ref=ref, span=SPAN, rules=rules, refs=refs)


def rule(
    *sources: Mapping[str, list[str]],
    to: list[Mapping[str, list[str]]] | None = None,
    when: Mapping[str, list[str]] | None = None,
) -> IstioRule:
    """Return a rule. `not...` fields and `!key` conditions have the values that must not match."""
    return IstioRule(
        origin=Origin(PolicyRef("AuthorizationPolicy", "app", "rules", GROUP), 0, SPAN),
        sources=tuple(map(_fields, sources)) or None,
        operations=None if to is None else tuple(map(_fields, to)),
        conditions=tuple(
            When(key.lstrip("!"), _values([] if key[0] == "!" else values, values if key[0] == "!" else []), SPAN)
            for key, values in (when or {}).items()
        ),
    )


def _fields(written: Mapping[str, list[str]]) -> Fields:
    names = {f"{name[3].lower()}{name[4:]}" if name.startswith("not") else name: None for name in written}
    return {name: _values(written.get(name, []), written.get(f"not{name[0].upper()}{name[1:]}", [])) for name in names}


def _values(values: list[str], not_values: list[str]) -> Values:
    return Values(
        tuple(WrittenValue(text, SPAN) for text in values), tuple(WrittenValue(text, SPAN) for text in not_values), SPAN
    )


def holds(predicate: Predicate, values: Mapping[Attribute, Known]) -> bool:
    """Evaluate a predicate on a request in which every attribute that it reads is known."""
    from eastgate.ir.predicates import And, Is, Not, Or

    match predicate:
        case Is():
            return predicate.accepts(values.get(predicate.attribute))
        case Computed():
            return predicate.holds({attribute: values.get(attribute) for attribute in predicate.attributes})
        case Not(part):
            return not holds(part, values)
        case And(parts):
            return all(holds(part, values) for part in parts)
        case Or(parts):
            return any(holds(part, values) for part in parts)
