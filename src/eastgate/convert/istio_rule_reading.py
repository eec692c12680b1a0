"""Converts rules of Istio to GEP-3779: one rule for each operation, with the callers of all its sources."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from eastgate.convert import codes
from eastgate.convert.gep_reading import GepRule, NamedCaller
from eastgate.convert.istio_callers import IDENTITY_FIELDS, CallerReader, NotExpressibleError, Part
from eastgate.convert.istio_operations import OPERATION_FIELDS, read_operation
from eastgate.convert.model import Job
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy
from eastgate.dialects.istio.written import Fields, IstioRule
from eastgate.dialects.istio.ztunnel import http_parts


class RuleReader:
    """Reads the rules of one policy. `at_ztunnel`: ztunnel enforces it for some pods."""

    def __init__(self, policy: IstioAuthorizationPolicy, job: Job, *, at_ztunnel: bool) -> None:
        self._policy, self._job, self._at_ztunnel = policy, job, at_ztunnel
        self._denies = policy.action is Action.DENY
        self._callers = CallerReader(policy, job, at_ztunnel=at_ztunnel)

    def rules(self) -> list[GepRule]:
        """Return the rules.

        Values that the target API cannot express are left out of an ALLOW; in a DENY they raise NotExpressibleError.
        """
        return [read for rule in self._policy.rules for read in self._read(rule)]

    def _read(self, rule: IstioRule) -> Iterator[GepRule]:
        try:
            self._check_ztunnel(rule)
            identity, operation = self._conditions(rule)
            callers = self._callers_of(rule.sources or ({},), identity)
        except NotExpressibleError as error:
            self._leave_out(error)
            return
        if callers == ():
            return
        for fields in rule.operations or ({},):
            try:
                parts = _parts(fields, OPERATION_FIELDS, operation)
                read = read_operation(parts, self._job, denies=self._denies)
            except NotExpressibleError as error:
                self._leave_out(error)
            else:
                yield GepRule(callers, read.ports, read.paths, read.methods, rule.span, read.paths_span)

    def _check_ztunnel(self, rule: IstioRule) -> None:
        """Leave out an ALLOW rule that ztunnel drops.

        A DENY rule is converted as written, which denies more than ztunnel does.
        """
        dropped = http_parts(rule) if self._at_ztunnel else ()
        if not dropped:
            return
        message = f"ztunnel does not read {', '.join(dropped)}"
        if not self._denies:
            raise NotExpressibleError(codes.ZTUNNEL, message, rule.span)
        self._job.lose(codes.ZTUNNEL, f"{message}, but the converted rule does: it denies more", rule.span)

    def _conditions(self, rule: IstioRule) -> tuple[list[Part], list[Part]]:
        """Return the conditions on identities, and those on operations."""
        identity: list[Part] = []
        operation: list[Part] = []
        for when in rule.conditions:
            if when.key in IDENTITY_FIELDS:
                identity.append((when.key, when.values))
            elif when.key in OPERATION_FIELDS:
                operation.append((when.key, when.values))
            else:
                raise NotExpressibleError(codes.FIELD, f"the target cannot express `{when.key}`", when.span)
        return identity, operation

    def _callers_of(self, sources: Sequence[Fields], conditions: Sequence[Part]) -> tuple[NamedCaller, ...] | None:
        """Return the callers of ANY source; None means any caller."""
        callers: dict[NamedCaller, None] = {}
        for source in sources:
            try:
                read = self._callers.callers(_parts(source, IDENTITY_FIELDS, conditions))
            except NotExpressibleError as error:
                self._leave_out(error)
                continue
            if read is None:
                return None
            callers.update(dict.fromkeys(read))
        return tuple(callers)

    def _leave_out(self, error: NotExpressibleError) -> None:
        if self._denies:
            raise error
        message = f"{error.message}: rules that need it are left out"
        self._job.lose(error.code, message, error.span, help=error.way_out)


def _parts(fields: Fields, known: Container[str], conditions: Sequence[Part]) -> list[Part]:
    for name, values in fields.items():
        if name not in known:
            raise NotExpressibleError(codes.FIELD, f"the target cannot express `{name}`", values.span)
    return [*fields.items(), *conditions]
