"""Diagnostics that need all manifests, kept up to date.

A dialect examines its policies again after a change of one of them, or of an object of a kind that its findings depend
on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.dialects import DIALECTS, Policy
from eastgate.ir import PolicyRef
from eastgate.settings import Settings


@dataclass(frozen=True, slots=True)
class ExaminationFindings:
    """The diagnostics of an examination, each with its policy, and the policies whose errors have gone."""

    found: list[tuple[Policy | None, Diagnostic]] = field(default_factory=list)
    mended: list[Policy] = field(default_factory=list)

    @property
    def errors(self) -> dict[PolicyRef | None, list[Diagnostic]]:
        """Return the errors by policy. The key None has errors that belong to no policy."""
        errors: dict[PolicyRef | None, list[Diagnostic]] = {}
        for policy, finding in self.found:
            if finding.is_error:
                errors.setdefault(policy.ref if policy is not None else None, []).append(finding)
        return errors


@dataclass(frozen=True, slots=True)
class PolicyExamination:
    """The policies of each dialect that examines its own. `unfit` are those with errors.

    `data_errors` are errors, by dialect, in cluster data about all policies, such as the configuration of a mesh. They
    must not stop answers about everything else.
    """

    settings: Settings
    policies: Mapping[str, Mapping[PolicyRef, Policy]] = field(default_factory=dict)
    unfit: Mapping[PolicyRef, Policy] = field(default_factory=dict)
    data_errors: Mapping[str, list[Diagnostic]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        settings: Settings,
        policies: Iterable[Policy],
        unfit: Iterable[Policy],
        data_errors: Mapping[str, list[Diagnostic]],
    ) -> PolicyExamination:
        """Return the examination of policies that were examined while they were read."""
        unfit_by_ref = {policy.ref: policy for policy in unfit}
        known = {policy.ref: policy for policy in policies} | unfit_by_ref
        by_dialect = {
            dialect.name: {ref: policy for ref, policy in known.items() if isinstance(policy, dialect.model)}
            for dialect in DIALECTS
            if dialect.examine is not None
        }
        return cls(settings, by_dialect, unfit_by_ref, data_errors)

    def after(
        self, put: Collection[Policy], gone: Collection[PolicyRef], kinds: Collection[str], world: World
    ) -> tuple[PolicyExamination, ExaminationFindings]:
        """Return the examination after a change of policies and of objects of these kinds, and its findings.

        `gone` are the policies that are removed or replaced; `world` has the current objects.
        """
        policies, data_errors, findings = {**self.policies}, {**self.data_errors}, ExaminationFindings()
        unfit = {ref: policy for ref, policy in self.unfit.items() if ref not in gone}
        for dialect in DIALECTS:
            if dialect.examine is None:
                continue
            known: Mapping[PolicyRef, Policy] = self.policies.get(dialect.name, {})
            own = {policy.ref: policy for policy in put if isinstance(policy, dialect.model)}
            if own or not known.keys().isdisjoint(gone):
                known = {**known}  # a comprehension would hash every name again
                for ref in gone:
                    known.pop(ref, None)
                known |= own
            elif not known or dialect.examined_kinds.isdisjoint(kinds):
                continue
            examined = [*dialect.examine(known.values(), self.settings, world)]
            policies[dialect.name] = known
            data_errors[dialect.name] = [finding for policy, finding in examined if _is_data_error(policy, finding)]
            findings.found.extend(pair for pair in examined if not _is_data_error(*pair))
            wrong = {policy.ref for policy, finding in examined if policy is not None and finding.is_error}
            findings.mended.extend(unfit.pop(ref) for ref in [*unfit] if ref in known and ref not in wrong)
            unfit |= {ref: known[ref] for ref in wrong}
        return PolicyExamination(self.settings, policies, unfit, data_errors), findings


def _is_data_error(policy: Policy | None, finding: Diagnostic) -> bool:
    in_cluster = finding.span is not None and finding.span.source.is_object
    return policy is None and finding.is_error and in_cluster
