"""Sources of Istio's rules as callers that other APIs can name.

Istio matches identities by patterns, in any trust domain, and by exclusion. Other APIs name identities, service
accounts and whole namespaces. An ALLOW keeps the callers that the target API can name, and the known accounts that
match. A DENY is converted only if the target API can name all callers that it denies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from eastgate.basics.diagnostics import Code
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import account_of, dns_label_problem, dns_subdomain_problem, service_account_id
from eastgate.convert import codes
from eastgate.convert.gep_reading import Account, NamedCaller, SpiffeIdentity, WholeNamespace
from eastgate.convert.istio_rules import accounts_of
from eastgate.convert.model import Assumption, Job
from eastgate.dialects.istio.lowering import View, lower_policy
from eastgate.dialects.istio.mesh_config import MeshConfig, mesh_settings, replace_trust_domains
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy
from eastgate.dialects.istio.provenance import Surface
from eastgate.dialects.istio.written import IstioRule, Values, When, WrittenValue
from eastgate.dialects.istio.ztunnel import lower_rule
from eastgate.ir import Origin, Predicate, Request
from eastgate.ir.attributes import IDENTITY
from eastgate.ir.spiffe import SCHEME, spiffe_problem
from eastgate.ir.symbolic.trees import truth

IDENTITY_FIELDS: Final[Mapping[str, str]] = {
    **{name: name for name in ("principals", "serviceAccounts", "namespaces", "trustDomains")},
    "source.principal": "principals",
    "source.serviceAccount": "serviceAccounts",
    "source.namespace": "namespaces",
    "source.trustDomain": "trustDomains",
}
"""The fields and condition keys that read the identity of a caller, with the field of the same meaning."""

Part = tuple[str, Values]
"""A field of a source or an operation, or the key of a condition, with its values."""

_NEEDED: Final = (Assumption.ISTIO_IDENTITIES, Assumption.ISTIO_TRUST_DOMAIN)


class NotExpressibleError(Exception):
    """A part of a rule that the target API cannot express."""

    def __init__(self, code: Code, message: str, span: Span | None, way_out: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.span, self.way_out = code, message, span, way_out


@dataclass(frozen=True, slots=True)
class _NamedCallers:
    """Callers by name. `exact`: the list is complete."""

    callers: tuple[NamedCaller, ...] = ()
    exact: bool = False


class CallerReader:
    """Reads the sources of one policy.

    `at_ztunnel`: ztunnel enforces the policy for some pods, with its own patterns.
    """

    def __init__(self, policy: IstioAuthorizationPolicy, job: Job, *, at_ztunnel: bool) -> None:
        self._policy, self._job, self._at_ztunnel = policy, job, at_ztunnel
        self._mesh: MeshConfig = mesh_settings(job.settings, job.world)
        self._denies = policy.action is Action.DENY

    def callers(self, parts: Sequence[Part]) -> tuple[NamedCaller, ...] | None:
        """Return the callers that match ALL parts of a source; None means any caller. Raises NotExpressibleError.

        All parts are fields of `IDENTITY_FIELDS`.
        """
        if not parts:
            return None
        named = self._named(parts)
        if named.exact:
            return named.callers
        span = parts[0][1].span
        if self._denies:
            message = "the target cannot name all of these callers"
            raise NotExpressibleError(codes.CALLERS, message, span, self._way_out())
        callers = (*named.callers, *self._known(parts, named.callers))
        listed = ", ".join(map(_text, callers)) or "no account is known"
        message = f"only the callers that the target can name are kept: {listed}"
        self._job.lose(codes.CALLERS, message, span, help=self._way_out())
        return callers

    def _way_out(self) -> str:
        """Return the assumptions that would help and are not made. If all are made, return what to write instead."""
        missing = [f"--assume {each}" for each in _NEEDED if not self._job.assumes(each)]
        if not missing:
            return "name each caller by its service account"
        holds = "Istio issues all identities, in the trust domain of the mesh"
        return f"if {holds}, add {' '.join(missing)}"

    def _named(self, parts: Sequence[Part]) -> _NamedCallers:
        """Return the callers named by one part that satisfy the other parts."""
        options = [self._values(IDENTITY_FIELDS[name], values.values) for name, values in parts if values.values]
        options.sort(key=lambda option: any(isinstance(each, WholeNamespace) for each in option.callers))
        if not options:
            return _NamedCallers()
        named = next((option for option in options if option.exact), options[0])
        alone = len(parts) == 1 and not parts[0][1].not_values
        whole = [caller for caller in named.callers if isinstance(caller, WholeNamespace)]
        holding = [caller for caller in named.callers if caller not in whole and self._holds(caller, parts)]
        return _NamedCallers((*holding, *(whole if alone else ())), named.exact and (alone or not whole))

    def _known(self, parts: Sequence[Part], named: Sequence[NamedCaller]) -> Iterator[NamedCaller]:
        """Yield the known service accounts that match and that no part names."""
        whole = {caller.namespace for caller in named if isinstance(caller, WholeNamespace)}
        for namespace in self._job.world.namespaces_in_use():
            for name in accounts_of(namespace, self._job) if namespace not in whole else ():
                account = Account(namespace, name, parts[0][1].span)
                if account not in named and self._holds(account, parts):
                    yield account

    # Matching of sources and callers

    def _holds(self, caller: NamedCaller, parts: Sequence[Part]) -> bool:
        request = Request({IDENTITY: self._identity(caller)})
        outcomes = [truth(predicate, request) is True for predicate in self._predicates(parts)]
        return any(outcomes) if self._denies else all(outcomes)

    def _identity(self, caller: NamedCaller) -> str:
        if isinstance(caller, SpiffeIdentity):
            return caller.spiffe
        assert isinstance(caller, Account)  # noqa: S101 - of a whole namespace nothing holds for all
        return service_account_id(self._job.settings.trust_domain, caller.namespace, caller.name)

    def _predicates(self, parts: Sequence[Part]) -> Iterator[Predicate]:
        """Yield the predicate of the parts for each kind of proxy."""
        origin = Origin(self._policy.ref, 0, self._policy.span)
        conditions = tuple(When(key, values, values.span) for key, values in parts if "." in key)
        fields = {name: values for name, values in parts if "." not in name}
        rule = IstioRule(origin, (fields,) if fields else None, None, conditions)
        (lowered,) = lower_policy(replace(self._policy, rules=(rule,)), View(Surface.ANY, self._mesh))
        yield lowered.when
        if self._at_ztunnel:
            yield lower_rule(rule, self._policy.namespace, denies=self._denies).when

    # Values

    def _values(self, field: str, values: Iterable[WrittenValue]) -> _NamedCallers:
        named = [self._value(field, value) for value in values]
        callers = dict.fromkeys(caller for each in named for caller in each.callers)
        return _NamedCallers(tuple(callers), all(each.exact for each in named))

    def _value(self, field: str, value: WrittenValue) -> _NamedCallers:
        match field:
            case "principals":
                texts = replace_trust_domains([value.text], self._mesh.trust_domains)
                texts += [value.text] if self._at_ztunnel else []
                named = [self._principal(text, value.span) for text in dict.fromkeys(texts)]
                return _NamedCallers(
                    tuple(caller for each in named for caller in each.callers), all(e.exact for e in named)
                )
            case "serviceAccounts":
                namespace, slash, name = value.text.partition("/")
                if not slash:
                    namespace, name = self._policy.namespace, value.text
                return self._account(Account(namespace, name, value.span))
            case "namespaces" if dns_label_problem(value.text) is None:
                return _NamedCallers((WholeNamespace(value.text, value.span),), self._is_assumed())
            case _:
                return _NamedCallers()

    def _account(self, account: Account) -> _NamedCallers:
        valid = dns_label_problem(account.namespace) is None and dns_subdomain_problem(account.name) is None
        return _NamedCallers((account,), self._is_assumed()) if valid else _NamedCallers()

    def _principal(self, text: str, span: Span) -> _NamedCallers:
        own = self._job.settings.trust_domain
        domain, _, rest = text.partition("/")
        known = "*" in domain or domain in (own, self._mesh.trust_domain)
        foreign = not known and self._job.assumes(Assumption.ISTIO_TRUST_DOMAIN)
        if "*" not in text:
            caller = self._named_identity(f"{SCHEME}{text}", span)
            return _NamedCallers((caller,), True) if caller is not None else _NamedCallers(exact=foreign)
        kind, _, name = rest.partition("/")
        namespace, _, account = name.partition("/")
        if (domain, kind, account) == (own, "ns", "sa/*") and dns_label_problem(namespace) is None:
            exact = self._job.assumes(Assumption.ISTIO_IDENTITIES)
            return _NamedCallers((WholeNamespace(namespace, span),), exact)
        return _NamedCallers(exact=foreign)

    def _named_identity(self, identity: str, span: Span) -> NamedCaller | None:
        if spiffe_problem(identity) is not None:
            return None
        account = account_of(identity)
        if account is None or account[0] != self._job.settings.trust_domain:
            return SpiffeIdentity(identity, span)
        named = Account(*account[1:], span)
        return named if self._account(named).callers else SpiffeIdentity(identity, span)

    def _is_assumed(self) -> bool:
        """Return whether a name without a trust domain means one account, or the accounts of one namespace."""
        return self._mesh.trust_domain == self._job.settings.trust_domain and all(map(self._job.assumes, _NEEDED))


def _text(caller: NamedCaller) -> str:
    match caller:
        case SpiffeIdentity(spiffe):
            return spiffe
        case Account(namespace, name):
            return f"{namespace}/{name}"
        case WholeNamespace(namespace):
            return f"{namespace}/*"
