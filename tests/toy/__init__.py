"""A dialect for guest lists that is small enough to read in five minutes.

A GuestList names the service accounts that may call the pods of an app. One kind, one stage. It is not part of the
product: `test_toy.py` registers it with one line and runs every command with it. CONTRIBUTING explains its files.
"""

from __future__ import annotations

from eastgate.dialects.base import Dialect, Kind, reader
from eastgate.dialects.linting import Linting
from eastgate.dialects.serving import AGE, Column, Served, ServedResource, Status
from tests.toy import codes, meaning, shapes
from tests.toy.assemble import layers
from tests.toy.conversions import to_gep
from tests.toy.model import GROUP, GuestList
from tests.toy.settings import ToySettings
from tests.toy.words import WORDS

__all__ = ["DIALECT"]


def _lint() -> Linting[GuestList]:
    from tests.toy.lint import LINTING  # only `lint` and `describe` need it

    return LINTING


DIALECT: Dialect[GuestList] = Dialect(
    name="Guest lists",
    model=GuestList,
    kinds=(
        Kind(
            GROUP,
            "v1",
            "GuestList",
            reader(shapes.GUEST_LIST, meaning.guest_list),
            lambda: (shapes.GUEST_LIST,),
            short="gl",
            served=Served(ServedResource("guestlists", Status.CONDITIONS), (Column("App", ".spec.app"), AGE)),
            locate=meaning.locate,
        ),
    ),
    layers=lambda attached, scene: layers(attached, scene.settings),
    words=WORDS,
    lint=_lint,
    settings=ToySettings,
    conversions={"authorizationpolicy-v1alpha2": to_gep},
    codes=lambda: (codes,),
    closes=lambda policy: not policy.rules and not policy.audit,
    status=meaning.accepted,
)
