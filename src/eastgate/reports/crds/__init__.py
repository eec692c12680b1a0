"""Schemas of the policies for API servers and editors, generated from the shapes that validate files.

`definitions` are CustomResourceDefinitions. `admission_policies` express rules that a CustomResourceDefinition cannot
express. `editor_schemas` are JSON Schemas for authors of policies. Each requirement is declared once: its CEL rule is
next to its Python rule.
"""

from eastgate.reports.crds.definitions import Webhook, admission_policies, definitions
from eastgate.reports.crds.editor import combine_schemas, editor_schemas, file_name

__all__ = ["Webhook", "admission_policies", "combine_schemas", "definitions", "editor_schemas", "file_name"]
