"""Names of environments are as short as possible and unique."""

from __future__ import annotations

import pytest

from eastgate.reading.repository.naming import names


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (["overlays/prod", "overlays/dev"], ["prod", "dev"]),
        (["apps/prod", "infra/prod"], ["apps/prod", "infra/prod"]),
        (["shop/overlays/prod", "pay/overlays/prod"], ["shop/prod", "pay/prod"]),
        (["prod/k8s", "dev/k8s"], ["prod", "dev"]),
        (["k8s", "deploy"], ["k8s", "deploy"]),
        ([".", "prod"], ["root", "prod"]),
        (["a/x", "b/x", "x"], ["a/x", "b/x", "x"]),
        (["prod/base", "prod"], ["prod/base", "prod"]),
        ([], []),
    ],
)
def test_names(places: list[str], expected: list[str]) -> None:
    assert names([(place, "") for place in places]) == expected


def test_a_given_name_stands_at_the_end() -> None:
    places = [("argocd", "shop"), ("clusters/eu", "shop"), ("clusters/us", "shop"), ("argocd", "root")]
    assert names(places) == ["argocd/shop", "eu/shop", "us/shop", "root"]


def test_equal_places_are_numbered() -> None:
    assert names([("apps", "web"), ("apps", "web"), ("apps", "web-2")]) == ["apps/web", "apps/web-2", "web-2"]
