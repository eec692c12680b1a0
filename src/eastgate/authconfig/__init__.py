"""Auth schemes, evaluated: who is calling, and may they?

`model` is what a scheme says. `evaluate` runs one on a request, offline and in the authorizer service alike: what is
known of the request are `RequestFacts`, whom it may ask are `Services`, and the answer with its reasons is a
`Judgement`. `problems` are what a reader of schemes asks before it hands one over.

It follows Authorino, and differs where following would let somebody in: a `when` that errs denies, the issuer,
audience and times of a token are checked, and a Rego variable without a value is an error of the module.
"""

from eastgate.authconfig.caching import AnswerCache
from eastgate.authconfig.evaluate import evaluate
from eastgate.authconfig.facts import Answer, Fetcher, RequestFacts, Review, Reviewer, Secret, Services, Unavailable
from eastgate.authconfig.fetching import HttpFetcher
from eastgate.authconfig.judgement import Judgement, Seen, Step, StepKind, Verdict

__all__ = [
    "Answer",
    "AnswerCache",
    "Fetcher",
    "HttpFetcher",
    "Judgement",
    "RequestFacts",
    "Review",
    "Reviewer",
    "Secret",
    "Seen",
    "Services",
    "Step",
    "StepKind",
    "Unavailable",
    "Verdict",
    "evaluate",
]
