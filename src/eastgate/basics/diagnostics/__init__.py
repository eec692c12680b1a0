"""Diagnostics: an error in an input, its place, and the text to write instead."""

from eastgate.basics.diagnostics.model import Code, Diagnostic, Reporter, Severity
from eastgate.basics.diagnostics.render import render, render_all, snippet
from eastgate.basics.diagnostics.suggest import did_you_mean, mistyped

__all__ = ["Code", "Diagnostic", "Reporter", "Severity", "did_you_mean", "mistyped", "render", "render_all", "snippet"]
