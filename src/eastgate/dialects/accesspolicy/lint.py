"""AccessPolicies for lint: their rules and targets, and the reading of `unlistedCaller`."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.dialects.accesspolicy import lint_codes as codes
from eastgate.dialects.accesspolicy.lint_paths import find_other_paths
from eastgate.dialects.accesspolicy.model import Action, Policy
from eastgate.dialects.accesspolicy.provenance import UnlistedCallerReading
from eastgate.dialects.accesspolicy.settings import AccessSettings, UnlistedCaller
from eastgate.dialects.linting import EmptyList, Linting, ReadingChoice, Statements, is_shaped, naming_of
from eastgate.ir import Attachment, Layer
from eastgate.settings import Settings

_NO_TOOL = EmptyList(codes.NO_TOOL, "allows no tool", "name the tools, or remove the rule")


def _statements(policy: Policy) -> Statements:
    return Statements(
        rules=policy.rules,
        naming=naming_of(policy.rules),
        targets=policy.targets,
        target_field="targetRefs",
        allows=policy.action is Action.ALLOW,
        empty_list=_NO_TOOL,
    )


def _may_be_unlisted(layers: Sequence[Layer], _attached: Sequence[Attachment[Policy]]) -> bool:
    return is_shaped(layers, UnlistedCallerReading.setting)


def _other_unlisted_caller(settings: Settings) -> Settings:
    denies = settings.section(AccessSettings).unlisted_caller is UnlistedCaller.DENY
    return settings.having(AccessSettings(UnlistedCaller.PROCEED if denies else UnlistedCaller.DENY))


LINTING: Linting[Policy] = Linting(
    statements=_statements,
    blames=lambda _policy, _layer: True,
    readings=(
        ReadingChoice(
            UnlistedCallerReading.setting,
            codes.READING_UNLISTED_CALLER,
            _other_unlisted_caller,
            shapes=_may_be_unlisted,
            concerns=lambda attachment: attachment.policy.action is Action.ALLOW,
        ),
    ),
    fallback=None,
    checks=(find_other_paths,),
    codes=(codes,),
)
