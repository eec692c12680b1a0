"""CEL expressions: checked before they run, lowered to predicates where they are simple, never allowing by an error.

The expression language itself is `cel-expr-python`, the CEL team's own C++ core; this package is all that the rest of
Eastgate sees of it. Importing it loads neither that core nor protobuf: the first expression does.

An attribute that is absent is an error in CEL, not a value: `request.path != "/x"` on a request without a path is
neither true nor false, `&&` and `||` forget the error where the other side decides, and `has(request.path)` asks
without erring. So an expression has three outcomes, and a rule must say what the third one means to it:

- an allow rule uses `Expression.lowered`, which holds where the expression is true;
- a deny rule uses `Expression.lowered_or_error`, which holds where it is true or errs.
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
