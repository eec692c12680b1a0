"""A change of one object, and the judgement of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eastgate.basics.records import dataclass
from eastgate.ir import PolicyRef


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One object that is put or removed: `put` is its plain data, as the API server has it; None: it is removed.

    `old` is what it was, where somebody says so.
    """

    ref: PolicyRef
    put: Mapping[str, Any] | None = None
    old: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls, document: Mapping[str, Any], *, removed: bool = False, old: Mapping[str, Any] | None = None
    ) -> ObjectChange:
        """Return the change that puts an object, or removes it."""
        metadata = document.get("metadata")
        named = metadata if isinstance(metadata, Mapping) else {}
        group, _, _ = str(document.get("apiVersion", "")).rpartition("/")
        namespace = named.get("namespace")
        ref = PolicyRef(
            str(document.get("kind")),
            str(namespace) if namespace is not None else None,
            str(named.get("name", "")),
            group,
        )
        return cls(ref, None if removed else document, document if removed else old)


@dataclass(frozen=True, slots=True)
class ChangeJudgement:
    """The judgement of a change: what to warn of, openings first, and why it is refused, if it is.

    `determined`: all that it opens is in the warnings. Where that is False, a warning says what is not known.
    """

    warnings: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    determined: bool = True

    @property
    def allowed(self) -> bool:
        """Return whether nothing speaks against the change."""
        return not self.refusals
