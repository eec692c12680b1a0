"""Finds names in a question that are probably misspelt: no object has the name, and an object has a similar one.

A caller that no manifest declares may still exist. So a misspelt caller is no error: no rule allows it, and a test that
expects a denial would pass for the wrong reason.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.questions import Question, ends
from eastgate.basics.diagnostics import Code, Diagnostic, Severity, mistyped
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster.points import NamedPoint, Point
from eastgate.ir import AccountsOf, Computed, Is, Layer, OneOf, Suffix
from eastgate.ir.addresses import comparable_host, is_host
from eastgate.ir.attributes import (
    HOST,
    IDENTITY,
    MCP_METHOD,
    MCP_TOOL,
    MESH_NAME,
    METHOD,
    SNI,
    Attribute,
    AttributeKind,
)
from eastgate.ir.spiffe import account_of, service_account_id

UNKNOWN_NAME = Code(
    "EG0130",
    "unknown name",
    "No manifest and no policy has this name, and one has a similar name. An undeclared name may exist, so that "
    "Eastgate answers the question as written; `--strict` makes this an error. If the name is right, declare it.",
    Severity.WARNING,
)
METHOD_CASE = Code(
    "EG0131",
    "method in lower case",
    "Methods are compared with their letter case: `get` is not GET, and no rule for GET is about it. `--strict` makes "
    "this an error.",
    Severity.WARNING,
)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
_MCP_METHODS = frozenset(
    [
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "resources/subscribe",
        "resources/unsubscribe",
        "completion/complete",
        "logging/setLevel",
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
    ]
)


@dataclass(frozen=True, slots=True)
class Doubt:
    """A part of a question that is probably misspelt.

    `part` is the field of the Question, and `key` the entry of a mapping in it.
    """

    part: str
    code: Code
    message: str
    help: str
    key: str = ""

    def diagnostic(self, span: Span | None = None, *, strict: bool = False) -> Diagnostic:
        """Return the doubt as a warning at a place; with `strict`, as an error."""
        code = replace(self.code, severity=Severity.ERROR) if strict else self.code
        return Diagnostic(code, self.message, span, self.help)


class KnownNames:
    """The names in manifests and policies, to compare with those of questions."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def doubts(self, question: Question) -> list[Doubt]:
        """Return all parts of a question that are probably misspelt."""
        to = question.destination
        doubts = [
            *self._source(question.source),
            *self._method(question.method),
            *self._host("host", question.host),
            *self._host("destination", to.value if isinstance(to, ends.Host) else None),
            *self._host("sni", question.sni),
            *self._word("mcp_method", "MCP method", question.mcp_method, MCP_METHOD, _MCP_METHODS),
            *self._word("tool", "tool", question.tool, MCP_TOOL),
        ]
        for part, kind in (("headers", AttributeKind.HEADER), ("claims", AttributeKind.CLAIM)):
            for name in getattr(question, part) or {}:
                meant = name.lower() if kind is AttributeKind.HEADER else name
                doubts += self._of(part, kind.value, meant, self._keys[kind], name)
        for name in question.external_auth:
            if not all(map(self._is_written, name.partition(":")[0].split("."))):  # a policy may name a missing one
                doubts += self._of("external_auth", "external authorizer", name, self._authorizers, name)
        return doubts

    # Callers

    def _source(self, source: ends.Source) -> Iterator[Doubt]:
        settings = self._authority.settings
        match source:
            case ends.ServiceAccount(namespace, name):
                yield from self._account(source, namespace, name, "sa:{}/{}")
            case ends.SpiffeId(identity):
                account = account_of(identity)
                if account is not None and account[0] == settings.trust_domain:
                    yield from self._account(source, account[1], account[2], service_account_id(account[0], "{}", "{}"))
                else:
                    yield from self._of("source", "SPIFFE ID", identity, self._values[IDENTITY])
            case ends.CertificateName(name):
                accounts = ((space, name) for space, names in self._accounts.items() for name in names)
                mesh_names = {settings.mesh_name(*account) for account in accounts} | self._values[MESH_NAME]
                for doubt in self._of("source", "identity", name, mesh_names):
                    yield replace(doubt, help=doubt.help.replace("did you mean ", "did you mean id:"))

    def _account(self, text: ends.Source, namespace: str, name: str, form: str) -> Iterator[Doubt]:
        if name in self._declared.get(namespace, ()):
            return
        meant = namespace if namespace in self._namespaces else self._slip(namespace, self._namespaces)
        if meant is None:
            return
        account = name if name == "default" else self._slip(name, self._accounts.get(meant, set())) or name
        if meant != namespace:
            what = f"the namespace `{namespace}` of `{text}`"
        elif account != name:
            what = f"the service account `{name}` of the namespace {namespace}"
        else:
            return
        yield _unknown("source", what, form.format(meant, account))

    @cached_property
    def _declared(self) -> Mapping[str, set[str]]:
        """Return the service accounts that manifests have, by namespace."""
        world = self._authority.world
        accounts: defaultdict[str, set[str]] = defaultdict(set)
        for workload in world.workloads.values():
            if workload.is_pod:
                accounts[workload.namespace].add(workload.service_account)
        for account in world.service_accounts.values():
            accounts[account.namespace].add(account.name)
        return accounts

    @cached_property
    def _accounts(self) -> Mapping[str, set[str]]:
        """Return the service accounts that manifests have or policies name, by namespace."""
        accounts = defaultdict(set, {namespace: set(names) for namespace, names in self._declared.items()})
        domain = self._authority.settings.trust_domain
        for identity in self._values[IDENTITY]:
            account = account_of(identity)
            if account is not None and account[0] == domain:
                accounts[account[1]].add(account[2])
        tail = self._authority.settings.mesh_name("", "")[1:]
        for name in self._values[MESH_NAME]:
            account_name, _, namespace = name.removesuffix(tail).rpartition(".")
            if name.endswith(tail):
                accounts[namespace].add(account_name)
        return accounts

    @cached_property
    def _namespaces(self) -> frozenset[str]:
        """Return the namespaces that manifests declare or use, or that a policy names."""
        world, policies = self._authority.world, self._authority.policies
        used = {*world.namespaces_in_use(), *(str(obj.namespace) for obj in world.objects if obj.namespace)}
        used |= {policy.ref.namespace for policy in policies if policy.ref.namespace}
        matchers = [atom.matcher for atom in self._atoms if isinstance(atom, Is)]
        used |= {matcher.namespace for matcher in matchers if isinstance(matcher, AccountsOf)}
        tail = self._authority.settings.mesh_name("", "")[1:]
        ends = (matcher.text for matcher in matchers if isinstance(matcher, Suffix) and matcher.text.endswith(tail))
        used |= {end.removesuffix(tail).strip(".") for end in ends}
        return frozenset({"default", *used, *self._accounts})

    # Requests

    def _method(self, method: str | None) -> Iterator[Doubt]:
        if method is None or method in _METHODS:
            return
        methods = _METHODS | self._values[METHOD]
        if method not in methods and method.upper() in methods:
            message = f"methods are compared with their letter case: `{method}` is not {method.upper()}"
            yield Doubt("method", METHOD_CASE, message, f"write {method.upper()}")
        else:
            yield from self._of("method", "method", method, methods)

    def _host(self, part: str, text: str | None) -> Iterator[Doubt]:
        if text is None or not is_host(text):
            return
        host = comparable_host(text)
        if not any(host.endswith(suffix) for suffix in self._host_suffixes):
            yield from self._of(part, "host", host, self._hosts)

    @cached_property
    def _hosts(self) -> frozenset[str]:
        """Return the hosts that policies, routes and listeners name, and those of Services."""
        world, domain = self._authority.world, self._authority.settings.cluster_domain
        names = {host for host in self._hostnames if not host.startswith("*")}
        for service in world.services.values():
            short = f"{service.name}.{service.namespace}"
            names |= {service.name, short, f"{short}.svc", f"{short}.svc.{domain}"}
        return frozenset({*names, *self._values[HOST], *self._values[SNI]})

    @cached_property
    def _hostnames(self) -> frozenset[str]:
        world = self._authority.world
        listeners = (listener for gateway in world.gateways.values() for listener in gateway.listeners)
        routes = (host for route in world.routes.values() for host in route.hostnames)
        engine = programs_of(self._authority)
        configs = (comparable_host(host) for ref in engine.host_refs for host in engine.hosts_of(ref) or ())
        return frozenset({*(listener.hostname for listener in listeners if listener.hostname), *routes, *configs})

    @cached_property
    def _host_suffixes(self) -> frozenset[str]:
        atoms_of_hosts = (atom for atom in self._atoms if isinstance(atom, Is) and atom.attribute in (HOST, SNI))
        suffixes = {atom.matcher.text for atom in atoms_of_hosts if isinstance(atom.matcher, Suffix)}
        return frozenset({*suffixes, *(host[1:] for host in self._hostnames if host.startswith("*."))})

    def _word(
        self, part: str, noun: str, word: str | None, attribute: Attribute, more: frozenset[str] = frozenset()
    ) -> Iterator[Doubt]:
        if word is not None and word not in more:
            yield from self._of(part, noun, word, self._values[attribute] | more)

    def _of(self, part: str, noun: str, word: str, candidates: Iterable[str], key: str = "") -> Iterator[Doubt]:
        meant = self._slip(word, candidates)
        if meant is not None:
            yield _unknown(part, f"the {noun} `{word}`", meant, key)

    # Names in manifests and policies

    def _slip(self, word: str, candidates: Iterable[str]) -> str | None:
        """Return the probable name; None if a policy has the written name anywhere."""
        names = candidates if isinstance(candidates, set | frozenset) else set(candidates)
        meant = mistyped(word, names) if word not in names else None
        return meant if meant is not None and not self._is_written(word) else None

    def _is_written(self, name: str) -> bool:
        """Return whether a policy has the name in its text: it may name more than the values that it compares."""
        word = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
        spans = (policy.span.built or policy.span for policy in self._authority.policies)
        return any(word.search(span.source.line(at)) for span in spans for at in range(span.line, span.end_line + 1))

    @cached_property
    def _layers(self) -> list[Layer]:
        """Return every layer of every policy with a target."""
        engine, world = programs_of(self._authority), self._authority.world
        targets = (target for policy in self._authority.policies for target in policy.targets)
        points: list[Point] = [*world.workloads, *(target for target in targets if isinstance(target, NamedPoint))]
        programs = {id(program): program for program in map(engine.program, points)}
        return [layer for program in programs.values() for layer in program.layers]

    @cached_property
    def _atoms(self) -> list[Is | Computed]:
        return list(dict.fromkeys(atom for layer in self._layers for atom in layer.atoms(observed=True)))

    @cached_property
    def _values(self) -> defaultdict[Attribute, frozenset[str]]:
        """Return the values that policies name one by one, by attribute."""
        by_attribute: defaultdict[Attribute, set[str]] = defaultdict(set)
        for atom in self._atoms:
            if isinstance(atom, Is) and isinstance(atom.matcher, OneOf):
                by_attribute[atom.attribute] |= {value for value in atom.matcher.values if isinstance(value, str)}
        return defaultdict(frozenset, {attribute: frozenset(values) for attribute, values in by_attribute.items()})

    @cached_property
    def _keys(self) -> defaultdict[AttributeKind, set[str]]:
        """Return the names of headers and claims that policies look at."""
        keys: defaultdict[AttributeKind, set[str]] = defaultdict(set)
        for atom in self._atoms:
            for attribute in atom.attributes if isinstance(atom, Computed) else (atom.attribute,):
                keys[attribute.kind].add(attribute.key)
        return keys

    @cached_property
    def _authorizers(self) -> frozenset[str]:
        """Return the external authorizers that policies ask."""
        return frozenset(ask.authorizer for layer in self._layers for ask in layer.asks)


def _unknown(part: str, what: str, meant: str, key: str = "") -> Doubt:
    return Doubt(part, UNKNOWN_NAME, f"no manifest and no policy has {what}", f"did you mean {meant}?", key)
