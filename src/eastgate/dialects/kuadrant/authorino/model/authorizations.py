"""Checks that must agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.model.conditions import Condition
from eastgate.dialects.kuadrant.authorino.model.identities import SecretRef
from eastgate.dialects.kuadrant.authorino.model.metadata import HttpCall
from eastgate.dialects.kuadrant.authorino.model.parts import Constant, Part, look_at_path, reach_path
from eastgate.dialects.kuadrant.authorino.model.values import Cache, Value
from eastgate.dialects.kuadrant.authorino.paths import rego_mentions


@dataclass(frozen=True, slots=True)
class PatternRules(Part):
    """A condition on the authorization JSON."""

    condition: Condition

    @property
    def looks_at_path(self) -> bool:
        return self.condition.looks_at_path


@dataclass(frozen=True, slots=True)
class FetchedModule(Constant):
    """A Rego module at a URL, which is fetched again after so many seconds; after 0, not again."""

    call: HttpCall
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Rego(Part):
    """A Rego module whose `allow` must be true. `all_values`: its other rules are kept as well."""

    module: str
    all_values: bool = False
    version: int = 0
    fetched: FetchedModule | None = None
    """The location of the module, in place of `module`."""

    @property
    def looks_at_path(self) -> bool:
        return self.fetched is not None or reach_path(rego_mentions(self.module))


@dataclass(frozen=True, slots=True)
class SubjectAccess(Part):
    """A SubjectAccessReview of a user by the API server. Without attributes of a resource, on the path of the
    request.
    """

    user: Value | None
    groups: tuple[str, ...] = ()
    resource: Mapping[str, Value] | None = field(default=None, hash=False)
    selected_groups: Value | None = None
    """A list of groups, in place of `groups`."""

    @property
    def looks_at_path(self) -> bool:
        return self.resource is None or look_at_path(self.user, *self.resource.values(), self.selected_groups)


@dataclass(frozen=True, slots=True)
class PermissionCheck(Part):
    """A permission of a subject on a resource, which a SpiceDB server knows. One that lacks a name is never granted."""

    endpoint: str
    subject: Value | None = None
    subject_kind: Value | None = None
    resource: Value | None = None
    resource_kind: Value | None = None
    permission: Value | None = None
    insecure: bool = False
    shared_secret: SecretRef | None = None

    @property
    def looks_at_path(self) -> bool:
        names = (self.subject, self.subject_kind, self.resource, self.resource_kind, self.permission)
        return look_at_path(*names, self.shared_secret)


AuthorizationRule: TypeAlias = PatternRules | Rego | SubjectAccess | PermissionCheck


@dataclass(frozen=True, slots=True)
class Authorization(Part):
    """A check that must agree."""

    name: str
    rule: AuthorizationRule
    priority: int = 0
    when: Condition | None = None
    cache: Cache | None = None
    span: Span | None = field(default=None, compare=False)

    @property
    def looks_at_path(self) -> bool:
        return look_at_path(self.rule, self.when, self.cache)
