"""Callers that cannot exist: of accounts and namespaces that do not exist, and of other trust domains."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.dialects.linting import Finding, codes, locating
from eastgate.dialects.linting.nearest import corrected_name, list_some, nearest_name
from eastgate.reports.lint.inventory import Policy, PolicyInventory
from eastgate.reports.lint.statements import Caller, callers


def find_unknown_callers(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report every client that a policy names and that does not exist here."""
    exists: dict[tuple[str | None, ...], bool] = {}
    for policy in inventory.policies:
        for caller in callers(policy, inventory.settings):
            key = (caller.trust_domain, caller.namespace, caller.account)
            if key not in exists:
                exists[key] = _is_known(caller, inventory)
            if not exists[key]:
                finding = _finding(caller, policy, inventory)
                if finding is not None:
                    yield finding


def _is_known(caller: Caller, inventory: PolicyInventory) -> bool:
    """Return whether a caller can exist here."""
    if caller.trust_domain not in (None, inventory.settings.trust_domain):
        return False
    if caller.namespace is None:
        return True
    if caller.namespace not in inventory.namespaces:
        return False
    return caller.account in ("*", "default") or caller.account in inventory.accounts.get(caller.namespace, ())


def _finding(caller: Caller, policy: Policy, inventory: PolicyInventory) -> Finding | None:
    if caller.trust_domain not in (None, inventory.settings.trust_domain):
        return _foreign(caller, policy, inventory)
    if caller.namespace is not None and caller.namespace not in inventory.namespaces:
        return _no_namespace(caller, policy, inventory)
    return _no_account(caller, policy, inventory)


def _foreign(caller: Caller, policy: Policy, inventory: PolicyInventory) -> Finding:
    own = inventory.settings.trust_domain
    close = corrected_name(caller.trust_domain or "", [own])
    span = locating.scalar(policy.span, caller.span, caller.spellings, rule=caller.rule)
    if close is not None:
        message = f"the trust domain of {caller.identity} is almost, but not quite, {own}"
        return Finding(codes.TYPO, message, span, f"did you mean {own}?", (str(policy.ref),))
    message = f"{caller.identity} is of the trust domain {caller.trust_domain}, and this one is {own}"
    help_ = "nothing to do if the meshes are federated; otherwise write an identity of this trust domain"
    return Finding(codes.FOREIGN_TRUST_DOMAIN, message, span, help_, (str(policy.ref),))


def _no_namespace(caller: Caller, policy: Policy, inventory: PolicyInventory) -> Finding | None:
    name = caller.namespace or ""
    close = corrected_name(name, inventory.namespaces)
    exact, *others = caller.spellings
    span = locating.scalar(policy.span, caller.span, (exact, name, *others), rule=caller.rule)
    if close is not None:
        message = f"there is no namespace {name}, from which {policy.ref} names clients"
        return Finding(codes.TYPO, message, span, f"did you mean {close}?", (str(policy.ref),))
    if not inventory.world.namespaces:
        return None  # manifests without any have them declared elsewhere
    message = f"no manifest declares namespace {name}, or anything in it"
    return Finding(codes.NO_SUCH_NAMESPACE, message, span, f"add namespace {name} to the manifests", (str(policy.ref),))


def _no_account(caller: Caller, policy: Policy, inventory: PolicyInventory) -> Finding | None:
    namespace, name = caller.namespace or "", caller.account or ""
    if namespace not in inventory.declaring_accounts:
        return None
    close = nearest_name(name, inventory.accounts.get(namespace, ()))
    message = f"there is no service account {namespace}/{name}"
    help_ = (
        f"did you mean {close}?" if close else f"declare it, or name one of {list_some(inventory.accounts[namespace])}"
    )
    span = locating.scalar(policy.span, caller.span, caller.spellings, rule=caller.rule)
    return Finding(codes.NO_SUCH_ACCOUNT, message, span, help_, (str(policy.ref),))
