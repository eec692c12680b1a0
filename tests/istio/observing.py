"""Makes an Envoy report all policies that match a request, and not only the first one that it enforces.

Before each RBAC filter there is another one for every policy of it, with that policy as a shadow rule. Shadow rules
decide nothing. The policies that match are in the metadata of the request, and so in the access log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Config = dict[str, Any]

_MATCHED = "shadow_effective_policy_id"
_BAD_CUSTOM = "-deny-due-to-bad-CUSTOM-action"
_ALLOW, _DENY = "ALLOW", "DENY"


@dataclass(frozen=True)
class Matches:
    """The policies that matched a request, by their action."""

    allowing: tuple[str, ...] = ()
    denying: tuple[str, ...] = ()
    custom: tuple[str, ...] = ()


def observed(filters: Iterable[Config]) -> list[Config]:
    """Return filters with observers before each RBAC filter, or before all filters for bad CUSTOM policies."""
    observers: list[Config] = []
    enforcing: list[Config] = []
    for filter_ in filters:
        if not is_rbac(filter_) or not _denies_bad_custom(filter_):
            observers, enforcing = [*observers, *enforcing, *_observers(filter_), filter_], []
        else:
            observers += _observers(filter_)
            enforcing.append(filter_)
    return [*observers, *enforcing]


def is_rbac(filter_: Config) -> bool:
    return str((filter_.get("typed_config") or {}).get("@type", "")).endswith(".RBAC")


def matches_in(metadata: Mapping[str, Any]) -> Matches:
    """Return the matched policies from the metadata of RBAC filters."""
    matched = {key: policy_of(str(value)) for key, value in metadata.items() if key.endswith(_MATCHED)}
    return Matches(
        tuple(sorted(policy for key, policy in matched.items() if key.startswith(_prefix(_ALLOW)))),
        tuple(sorted(policy for key, policy in matched.items() if key.startswith(_prefix(_DENY)))),
        tuple(sorted(policy for key, policy in matched.items() if key.startswith("istio_ext_authz_"))),
    )


def policy_of(entry: str) -> str:
    """Return the policy of an entry such as `ns[shop]-policy[readers]-rule[0]`."""
    start = entry.index("ns[")
    namespace, _, rest = entry[start + 3 :].partition("]-policy[")
    return f"AuthorizationPolicy/{namespace}/{rest.partition(']-rule[')[0]}"


def _prefix(action: str) -> str:
    return f"observed_{action.lower()}_"


def _observers(filter_: Config) -> list[Config]:
    """Return the observers of an RBAC filter. AUDIT policies, which decide nothing, and other filters have none."""
    rules = filter_["typed_config"].get("rules") or {} if is_rbac(filter_) else {}
    if rules.get("action", _ALLOW) not in (_ALLOW, _DENY):
        return []
    return [_observer(filter_, rules, entries) for entries in _by_policy(rules)]


def _denies_bad_custom(filter_: Config) -> bool:
    """Return whether a filter denies for a CUSTOM policy that cannot be enforced. There is one for each provider."""
    policies = (filter_["typed_config"].get("rules") or {}).get("policies") or {}
    return bool(policies) and all(name.endswith(_BAD_CUSTOM) for name in policies)


def _by_policy(rules: Config) -> Iterable[Config]:
    """Return the entries of each policy. Entries without a policy never match."""
    entries: dict[str, Config] = {}
    for name, entry in (rules.get("policies") or {}).items():
        if "ns[" in name:
            entries.setdefault(policy_of(name), {})[name] = entry
    return entries.values()


def _observer(filter_: Config, rules: Config, entries: Config) -> Config:
    label = policy_of(next(iter(entries))).replace("/", ".")
    config = {
        "@type": filter_["typed_config"]["@type"],
        "shadow_rules": {**rules, "policies": entries},
        "shadow_rules_stat_prefix": f"{_prefix(rules.get('action', _ALLOW))}{label}_",
    }
    if "stat_prefix" in filter_["typed_config"]:
        config["stat_prefix"] = "observer."
    return {"name": filter_["name"], "typed_config": config}
