"""The choice of the ConfigMap with the MeshConfig in force."""

from __future__ import annotations

import pytest

from eastgate.authority.reading import ManifestError
from eastgate.cluster import ConfigMap, World
from eastgate.dialects.istio.mesh_config import mesh_settings
from eastgate.dialects.istio.settings import PathNormalization
from eastgate.settings import Settings
from tests.dialects.linkerd.reading import authority

_ELSEWHERE = Settings.from_mapping({"rootNamespace": "mesh"})


def config_map(namespace: str, name: str, normalization: str) -> ConfigMap:
    return ConfigMap(namespace, name, {"mesh": f"pathNormalization: {{normalization: {normalization}}}"})


@pytest.mark.parametrize(
    ("config_maps", "settings", "expected"),
    [
        ([("istio-system", "istio", "NONE")], Settings(), PathNormalization.NONE),
        ([("istio-system", "istio", "NONE")], _ELSEWHERE, PathNormalization.NONE),
        ([("istio-system", "istio", "NONE"), ("mesh", "istio", "BASE")], _ELSEWHERE, PathNormalization.BASE),
        ([("istio-system", "istio-canary", "NONE")], Settings(), PathNormalization.NONE),
        (
            [("istio-system", "istio-canary", "NONE"), ("istio-system", "istio", "BASE")],
            Settings(),
            PathNormalization.BASE,
        ),
        ([("app", "istio", "NONE")], Settings(), PathNormalization.BASE),
    ],
)
def test_the_config_map_of_the_control_plane_counts(
    config_maps: list[tuple[str, str, str]], settings: Settings, expected: PathNormalization
) -> None:
    world = World.of(config_map(*each) for each in config_maps)
    assert mesh_settings(settings, world).path_normalization is expected


_POLICY = """
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: p, namespace: app}
spec: {}
"""
_MESH = """---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: istio-system}
data: {mesh: "pathNormalization: {normalization: FORM}"}
"""


def mesh(name: str, form: str) -> str:
    return _MESH.replace("NAME", name).replace("FORM", form)


def test_revisions_that_differ_are_an_error() -> None:
    authority(_POLICY + mesh("istio", "NONE") + mesh("istio-canary", "NONE"))
    with pytest.raises(ManifestError, match="istio-system/istio-canary is another than that of istio-system/istio"):
        authority(_POLICY + mesh("istio", "NONE") + mesh("istio-canary", "BASE"))
