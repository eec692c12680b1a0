"""CEL expressions.

They are checked before they run, lowered to predicates if they are simple, and never allow by an error.

The expression language itself is `cel-expr-python`, the CEL team's own C++ core. The rest of Eastgate uses it through
this package only. The import loads neither that core nor protobuf; the first expression does.

In CEL an absent attribute is an error, not a value: `request.path != "/x"` on a request without a path is neither true
nor false. `&&` and `||` ignore an error if the other side decides, and `has(request.path)` asks without an error. So an
expression has three outcomes, and each rule must choose the meaning of the third:

- an allow rule uses `Expression.lowered`, which matches if the expression is true;
- a deny rule uses `Expression.lowered_or_error`, which matches if the expression is true or errs.
"""

from eastgate.dialects.cel.documents import GATEWAY_ROOTS, DocumentExpression, compile_document_cel
from eastgate.dialects.cel.expression import Expression, compile_cel
from eastgate.dialects.cel.problems import CelProblem
from eastgate.dialects.cel.upstream import CelEvaluationError
from eastgate.dialects.cel.variables import Variables

__all__ = [
    "GATEWAY_ROOTS",
    "CelEvaluationError",
    "CelProblem",
    "DocumentExpression",
    "Expression",
    "Variables",
    "compile_cel",
    "compile_document_cel",
]
