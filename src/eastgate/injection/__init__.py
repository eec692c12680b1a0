"""Sidecars in pods: who gets one, what it consists of, and how connections get to it. Pure: data in, data out."""

from eastgate.injection.inject import eject, inject, is_wanted
from eastgate.injection.objections import warnings_of
from eastgate.injection.options import InjectionOptions, InjectionRefused
from eastgate.injection.patches import json_patch
from eastgate.injection.redirection import Redirection, redirection_of, render_rules
from eastgate.injection.templates import inject_manifest, pod_of

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
