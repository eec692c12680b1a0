"""AuthConfig, field by field, in each of its versions."""

from __future__ import annotations

from eastgate.cluster.resources import resource
from eastgate.dialects.kuadrant.schemes import AUTH_CONFIG_SPEC, AUTH_CONFIG_SPEC_V1BETA1
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings

_ABOUT = "Authentication and authorization of callers to some hosts."

AUTH_CONFIG: Record[Settings] = resource("AuthConfig", AUTH_CONFIG_SPEC, about=_ABOUT)
AUTH_CONFIG_V1BETA1: Record[Settings] = resource("AuthConfig", AUTH_CONFIG_SPEC_V1BETA1, about=_ABOUT)
