"""Schemas of the policies for API servers and editors, made from the shapes that files are checked with.

`definitions` are CustomResourceDefinitions, `admission_policies` what these cannot say, `editor_schemas` JSON Schemas
for people who write policies. Nothing is described twice: a demand has its CEL rule beside its Python rule.
"""

from eastgate.reports.crds.definitions import Webhook, admission_policies, definitions
from eastgate.reports.crds.editor import combine_schemas, editor_schemas, file_name

__all__ = ["Webhook", "admission_policies", "combine_schemas", "definitions", "editor_schemas", "file_name"]
