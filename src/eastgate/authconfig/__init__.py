"""Auth schemes, evaluated: who is calling, and may they?

`model` is what a scheme says. `evaluate` runs one on a request, offline and in the authorizer service alike.
"""
