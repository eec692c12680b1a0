"""Evaluation of auth schemes: authentication and authorization of callers.

`model` is what a scheme says. `evaluate` runs one on a request, offline and in the authorizer service alike: what is
known of the request are `RequestFacts`, whom it may ask are `Services`, and the answer with its reasons is a
`Judgement`. `problems` are what a reader of schemes asks before it hands one over.

It follows Authorino, and differs where following would let somebody in: a `when` that errs denies, the issuer,
audience and times of a token are checked, and a Rego variable without a value is an error of the module.

Nothing is imported here: most questions need the model of a scheme at most, and only some its evaluator.
"""
