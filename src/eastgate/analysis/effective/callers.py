"""Who may call, in classes that no rule tells apart: each identity that a rule names, and the others in a few."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from eastgate.analysis.effective.residual import Facts
from eastgate.policy import AccountsOf, Computed, Is, Layer, Matcher, Observe, OneOf, Suffix, atoms, rules_of
from eastgate.policy.attributes import IDENTITY, MESH_NAME, Attribute
from eastgate.settings import Settings
from eastgate.world import account_of, service_account_id

__all__ = ["Caller", "CallerClass", "Namer", "atoms_of", "caller_classes"]

_FRESH = "_other_"  # a name that an account may have and nobody has
_SPIFFE = "spiffe://"
_NAMES = frozenset({IDENTITY, MESH_NAME})

# What a caller is, in the order in which they are shown: those who are named, those of a group, and the rest.
KINDS = (
    "serviceAccount",
    "spiffe",
    "name",
    "namespace",
    "suffix",
    "otherServiceAccount",
    "otherSpiffe",
    "otherName",
    "none",
)


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller, or a group of those whom no rule tells apart: `kind` is one of `KINDS`."""

    kind: str
    name: str
    identity: str | None
    mesh_name: str | None

    @property
    def is_exact(self) -> bool:
        """Whether this is one identity, and not a group of them."""
        return self.kind in ("serviceAccount", "spiffe", "name", "none")

    @property
    def facts(self) -> Facts:
        """What is known of its requests."""
        vague = frozenset[Attribute]() if self.is_exact else _NAMES
        return Facts({IDENTITY: self.identity, MESH_NAME: self.mesh_name}, vague)

    @property
    def order(self) -> tuple[int, str]:
        """Where it stands in a table."""
        return KINDS.index(self.kind), self.name


@dataclass(frozen=True, slots=True)
class CallerClass:
    """Callers whom no rule tells apart. The facts are those of any one of them."""

    callers: tuple[Caller, ...]

    @property
    def facts(self) -> Facts:
        """What is known of their requests."""
        return self.callers[0].facts


def atoms_of(layers: Iterable[Layer]) -> list[Is | Computed]:
    """Every atom that can change an outcome, once."""
    found: dict[Is | Computed, None] = {}
    for layer in layers:
        for case in layer.cases:
            found.update(dict.fromkeys(atoms(case.when)))
        for chain in layer.chains:
            for stage in chain.stages:
                if not isinstance(stage, Observe):
                    for rule in rules_of(stage):
                        found.update(dict.fromkeys(atoms(rule.when)))
    return list(found)


def caller_classes(looked_at: Sequence[Is | Computed], settings: Settings) -> list[CallerClass]:
    """All callers, in classes. What looks at them is in these atoms."""
    matchers: dict[Attribute, list[Matcher]] = {IDENTITY: [], MESH_NAME: []}
    for atom in looked_at:
        if isinstance(atom, Is) and atom.attribute in matchers:
            matchers[atom.attribute].append(atom.matcher)
    callers = _callers(matchers, settings)
    if any(isinstance(atom, Computed) and atom.attributes & _NAMES for atom in looked_at):
        return [CallerClass((caller,)) for caller in callers]  # a test of its own may tell any two apart
    classes: dict[Hashable, list[Caller]] = defaultdict(list)
    identity, mesh_name = _Signatures(matchers[IDENTITY]), _Signatures(matchers[MESH_NAME])
    for caller in callers:
        classes[identity.of(caller.identity), mesh_name.of(caller.mesh_name)].append(caller)
    return [CallerClass(tuple(members)) for members in classes.values()]


class _Signatures:
    """Which of many matchers contain a value, without asking each: exact values are looked up."""

    def __init__(self, matchers: Iterable[Matcher]) -> None:
        self._ranges: list[Matcher] = []
        exact: dict[object, list[int]] = defaultdict(list)
        for number, matcher in enumerate(matchers):
            if isinstance(matcher, OneOf):
                for value in matcher.values:
                    exact[value].append(number)
            else:
                self._ranges.append(matcher)
        self._exact = {value: tuple(numbers) for value, numbers in exact.items()}

    def of(self, value: str | int | None) -> Hashable:
        """Equal for two values that no matcher tells apart."""
        if value is None:
            return None
        return self._exact.get(value, ()), tuple(one.contains(value) for one in self._ranges)


def _callers(matchers: dict[Attribute, list[Matcher]], settings: Settings) -> list[Caller]:
    who = Namer(settings)
    found: dict[tuple[str, str], Caller] = {}
    for attribute, ours in matchers.items():
        for matcher in ours:
            for caller in who.named(matcher, in_mesh=attribute == MESH_NAME):
                found.setdefault((caller.kind, caller.name), caller)
    others = [who.account(_FRESH, _FRESH, "otherServiceAccount")]
    others.append(who.spiffe(f"{_SPIFFE}{_FRESH}/{_FRESH}", "otherSpiffe"))
    if matchers[MESH_NAME]:
        others.append(Caller("otherName", "", None, _FRESH))
    nobody = Caller("none", "", None, None)
    return sorted([*found.values(), *others, nobody], key=lambda caller: caller.order)


class Namer:
    """Callers by what rules compare them with. One service account has two names, and is one caller."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._mesh_tail = settings.mesh_name("", "")[1:]  # ".serviceaccount.identity..."

    def named(self, matcher: Matcher, *, in_mesh: bool) -> Iterable[Caller]:
        """Those whom a matcher names, or the group that it names."""
        match matcher:
            case OneOf(values):
                return [self.literal(str(value), in_mesh=in_mesh) for value in values]
            case AccountsOf(trust_domain, namespace) if trust_domain == self._settings.trust_domain:
                return [self.account(namespace, _FRESH, "namespace")]
            case AccountsOf():
                return [self.spiffe(f"{matcher.prefix}{_FRESH}", "suffix", f"{matcher.prefix}*")]
            case Suffix(text) if in_mesh and text.endswith(self._mesh_tail):
                namespace = text.removesuffix(self._mesh_tail).removeprefix(".")
                if namespace and "." not in namespace:
                    return [self.account(namespace, _FRESH, "namespace")]
        if isinstance(matcher, Suffix) and in_mesh:
            return [Caller("suffix", f"*{matcher.text}", None, f"{_FRESH}{matcher.text}")]
        return []

    def literal(self, name: str, *, in_mesh: bool) -> Caller:
        """The caller of one name."""
        found = account_of(name)
        if found is not None and found[0] == self._settings.trust_domain:
            return self.account(*found[1:])
        if name.startswith(_SPIFFE) or not in_mesh:
            return self.spiffe(name)
        account, dot, namespace = name.removesuffix(self._mesh_tail).rpartition(".")
        if name.endswith(self._mesh_tail) and dot and account and namespace:
            return self.account(namespace, account)
        return Caller("name", name, None, name)

    def account(self, namespace: str, account: str, kind: str = "serviceAccount") -> Caller:
        """A service account of this mesh, or some of them."""
        identity = service_account_id(self._settings.trust_domain, namespace, account)
        name = {"serviceAccount": f"{namespace}/{account}", "namespace": namespace}.get(kind, "")
        return Caller(kind, name, identity, self._settings.mesh_name(namespace, account))

    def spiffe(self, identity: str, kind: str = "spiffe", name: str | None = None) -> Caller:
        """An identity of elsewhere."""
        return Caller(kind, name if name is not None else identity if kind == "spiffe" else "", identity, identity)
