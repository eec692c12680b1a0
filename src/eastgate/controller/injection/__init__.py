"""Sidecars in pods: which pods get one, its containers, and its redirection. Pure functions from data to data."""

from eastgate.controller.injection.inject import eject, inject, inject_manifest, is_wanted, json_patch, pod_of
from eastgate.controller.injection.objections import warnings_of
from eastgate.controller.injection.options import InjectionOptions, InjectionRefused
from eastgate.controller.injection.redirection import Redirection, redirection_of, render_rules

__all__ = [
    "InjectionOptions",
    "InjectionRefused",
    "Redirection",
    "eject",
    "inject",
    "inject_manifest",
    "is_wanted",
    "json_patch",
    "pod_of",
    "redirection_of",
    "render_rules",
    "warnings_of",
]
