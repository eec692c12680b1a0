"""GJSON selectors and templates, as Kuadrant's Authorino uses them on its Authorization JSON.

`auth.identity.groups.#(=="admin")` selects from plain data what the Go library github.com/tidwall/gjson would
select from the same document written by Go's encoding/json; Authorino's modifiers and templates are included.
Whether a pattern matches decides who gets in, so the oddities of the original are kept. Selections are bounded:
past a bound, `TooMuch` is raised and the caller fails closed.

Differences from the original, which is version 1.14.0, as Authorino has it:

- Where it would take very long or panic (a negative `pos` of `@extract`), `TooMuch` is raised. A pattern that it
  gives up on as too complex, and takes for no match, is matched here.
- Objects and arrays print as Go's encoding/json prints data: compact, `<`, `>` and `&` escaped, 1.0 as 1. Keys keep
  the order of the dict, so a caller who wants Go's order of a map sorts them.
- Bytes that are not UTF-8, which only `@base64:decode` can produce, become replacement characters.
- Text that is not valid JSON, which `@extract`, `@replace`, `@case` and literals can produce, is read as forgivingly
  as there with a few exceptions: objects that never close, what follows a closed one, and `@pretty` of such text.
- `@strip` knows the characters of Python's version of Unicode.
- A document is one value, so the `..` prefix for JSON Lines sees one line.
"""

from eastgate.dialects.kuadrant.authorino.gjson.bounds import TooMuch
from eastgate.dialects.kuadrant.authorino.gjson.problems import path_problem
from eastgate.dialects.kuadrant.authorino.gjson.selection import Selection, select
from eastgate.dialects.kuadrant.authorino.gjson.templates import fill, is_template

__all__ = ["Selection", "TooMuch", "fill", "is_template", "path_problem", "select"]
