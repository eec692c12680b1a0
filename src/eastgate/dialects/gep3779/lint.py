"""GEP-3779 for lint: the rules and targets of its policies, and its settings with two readings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eastgate.dialects.base import Policy as AnyPolicy
from eastgate.dialects.gep3779 import lint_codes as codes
from eastgate.dialects.gep3779.model import Action, Policy
from eastgate.dialects.gep3779.provenance import PLACEMENTS, DenyOnlyReading
from eastgate.dialects.gep3779.settings import DenyOnly, GepSettings, ServiceTarget
from eastgate.dialects.linting import Linting, ReadingChoice, Statements, is_shaped, naming_of
from eastgate.ir import Attachment, Layer
from eastgate.settings import MeshMode, Settings


def _statements(policy: Policy) -> Statements:
    return Statements(
        rules=policy.rules,
        naming=naming_of(policy.rules),
        targets=policy.targets,
        target_field="targetRefs" if policy.ref.namespace is not None else "subject",
        allows=policy.action is Action.ALLOW,
        empty_list=None,
    )


def _blames(policy: AnyPolicy, layer: Layer) -> bool:
    return isinstance(policy, Policy) and layer.at == PLACEMENTS[policy.level]


# Readings


def _is_deny_only(layers: Sequence[Layer], _attached: Sequence[Attachment[Policy]]) -> bool:
    return is_shaped(layers, DenyOnlyReading.setting)


def _is_on_service(_layers: Sequence[Layer], attached: Sequence[Attachment[Policy]]) -> bool:
    return any(attachment.service is not None for attachment in attached)


def _other_deny_only(settings: Settings) -> Settings:
    gep = settings.section(GepSettings)
    return settings.having(replace(gep, deny_only=DenyOnly.ALLOW if gep.deny_only is DenyOnly.DENY else DenyOnly.DENY))


def _other_service_target(settings: Settings) -> Settings:
    gep = settings.section(GepSettings)
    if gep.service_target is ServiceTarget.TRAFFIC:
        return settings.having(replace(gep, service_target=ServiceTarget.WORKLOADS))
    ambient = replace(settings, mesh_mode=MeshMode.AMBIENT)
    return ambient.having(replace(gep, service_target=ServiceTarget.TRAFFIC))


LINTING: Linting[Policy] = Linting(
    statements=_statements,
    blames=_blames,
    readings=(
        ReadingChoice(
            DenyOnlyReading.setting,
            codes.READING_DENY_ONLY,
            _other_deny_only,
            shapes=_is_deny_only,
            concerns=lambda attachment: attachment.policy.action is Action.DENY,
        ),
        ReadingChoice(
            "serviceTarget",
            codes.READING_SERVICE_TARGET,
            _other_service_target,
            shapes=_is_on_service,
            concerns=lambda attachment: attachment.service is not None,
        ),
    ),
    fallback=None,
    checks=(),
    codes=(codes,),
)
