"""The auth schemes that an AuthPolicy embeds: Authorino's AuthConfig, in the names of any of its versions.

`SCHEME` checks one of several, `LONE_SCHEME` one that is for all hosts, `read_scheme` makes the model of one that has
been checked. What Authorino can do and Eastgate does not evaluate is an error: a check that is silently left out lets
somebody in.
"""

from eastgate.dialects.kuadrant.schemes.meaning import read_scheme
from eastgate.dialects.kuadrant.schemes.shapes import LONE_SCHEME, SCHEME

__all__ = ["LONE_SCHEME", "SCHEME", "read_scheme"]
