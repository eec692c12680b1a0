"""Evaluation of auth schemes: authentication and authorization of callers.

- `model` is the scheme.
- `evaluate` runs a scheme on a request, offline and in the authorizer service alike. `RequestFacts` is the known part
  of the request, `Services` are the servers that the scheme may ask, and `Judgement` is the answer with its reasons.
- `problems` has checks of expressions, for the reader of schemes.

The evaluation follows Authorino, except where that would allow too much: a `when` that errs denies, the issuer,
audience and times of a token are checked, and a Rego variable without a value is an error of the module.

This package imports nothing itself: most questions need at most the model of a scheme, and few its evaluator.
"""
