"""What an API server and an editor need to know of the policies: made from the shapes that files are checked with.

`definitions` are CustomResourceDefinitions, `admission_policies` what these cannot say, `editor_schemas` JSON Schemas
for people who write policies. Nothing is described twice: a demand has its CEL rule beside its Python rule.
"""

from eastgate.reports.crds.admission import admission_policies
from eastgate.reports.crds.definitions import Webhook, definitions
from eastgate.reports.crds.editor import editor_schemas, file_name, one_for_all

__all__ = ["Webhook", "admission_policies", "definitions", "editor_schemas", "file_name", "one_for_all"]
