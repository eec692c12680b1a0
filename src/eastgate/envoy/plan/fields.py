"""The headers and query parameters in the policies of a port, which a proxy must note for each request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eastgate.basics.records import dataclass
from eastgate.ir import Computed, Is
from eastgate.ir.attributes import Attribute

UNCLEAR = "unclear-values"  # the verdict on a request with ambiguous values


@dataclass(frozen=True, slots=True)
class RequestField:
    """A header or query parameter. `decides`: it can change a verdict; `patterned`: an expression looks at it."""

    attribute: Attribute
    decides: bool = False
    patterned: bool = False


def looked_at(asked: Iterable[Is | Computed], deciding: Iterable[Attribute]) -> tuple[RequestField, ...]:
    """Return the fields in these atoms; those of policies in audit mode decide nothing."""
    fields: dict[Attribute, RequestField] = {}
    for atom in asked:
        for attribute in (atom.attribute,) if isinstance(atom, Is) else atom.attributes:
            if attribute.is_field:
                field = fields.get(attribute, RequestField(attribute))
                fields[attribute] = replace(field, patterned=field.patterned or isinstance(atom, Computed))
    decides = frozenset(deciding)
    return tuple(replace(fields[attribute], decides=attribute in decides) for attribute in sorted(fields))


def merged(*lists: tuple[RequestField, ...]) -> tuple[RequestField, ...]:
    """Return the fields of several lists, each once, with the flags of all lists."""
    fields: dict[Attribute, RequestField] = {}
    for field in (each for fields_of in lists for each in fields_of):
        known = fields.get(field.attribute, field)
        fields[field.attribute] = replace(
            known, decides=known.decides or field.decides, patterned=known.patterned or field.patterned
        )
    return tuple(fields[attribute] for attribute in sorted(fields))
