"""GJSON selectors and templates, as Kuadrant's Authorino uses them on its Authorization JSON.

`auth.identity.groups.#(=="admin")` selects from plain data the same values that the Go library github.com/tidwall/gjson
selects from a document that Go's encoding/json wrote. Authorino's modifiers and templates are included. Patterns decide
about access, so the oddities of the original are kept. The work of a selection is limited: over a limit, `TooMuch` is
raised and the evaluation fails closed.

Differences from the original in version 1.14.0, which Authorino uses:

- `TooMuch` is raised if the original would take very long or panic (a negative `pos` of `@extract`). A pattern that is
  too complex for the original, and so does not match there, is matched here.
- Objects and arrays print as Go's encoding/json prints data: compact, `<`, `>` and `&` escaped, 1.0 as 1. Keys keep the
  order of the dict, so a caller that wants Go's order of a map sorts them.
- Bytes that are not UTF-8, which only `@base64:decode` can produce, become replacement characters.
- Text that is not valid JSON can come from `@extract`, `@replace`, `@case` and literals. It is read as leniently as by
  the original, with three exceptions: objects that never close, text after a closed object, and `@pretty` of such text.
- `@strip` uses the character tables of Python's version of Unicode.
- A document is one value, so the `..` prefix for JSON Lines sees one line.
"""

from eastgate.dialects.kuadrant.authorino.gjson.bounds import TooMuch
from eastgate.dialects.kuadrant.authorino.gjson.problems import path_problem
from eastgate.dialects.kuadrant.authorino.gjson.selection import Selection, select
from eastgate.dialects.kuadrant.authorino.gjson.templates import fill, is_template

__all__ = ["Selection", "TooMuch", "fill", "is_template", "path_problem", "select"]
