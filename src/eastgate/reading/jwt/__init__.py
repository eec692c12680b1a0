"""Identities from tokens: JWTs that an issuer signed (RFC 7519, in the compact form of RFC 7515).

`joserfc` implements the signatures and key formats. This package implements the rest, because an authorizer must be
stricter than a general library. It accepts one serialization and one reading of the text, never uses a key from the
token itself, and has an answer for every text. Importing this package loads neither joserfc nor an HTTP client; the
first key set does.

- `Keys` are the keys that an issuer publishes, `Expectations` are the requirements of a policy on a token, and
  `verify` compares.
- A `KeySource` has the present keys of an issuer: `KnownKeys` from files, `DiscoveredKeys` by OpenID Connect
  discovery. `verify_from` asks it, and asks again if a token names an unknown key.

The issuer comes from the policy, never from the token.
"""

from eastgate.reading.jwt.discovery import DiscoveredKeys, NotAtHand, PublishedKeys, key_sets_of, keys_at_hand
from eastgate.reading.jwt.keys import Keys
from eastgate.reading.jwt.outcome import Reason, RejectedToken, VerifiedToken
from eastgate.reading.jwt.sources import KeySource, KeysUnavailable, KnownKeys, VerifiedTokens, verify_from
from eastgate.reading.jwt.verification import Expectations, verify

__all__ = [
    "DiscoveredKeys",
    "Expectations",
    "KeySource",
    "Keys",
    "KeysUnavailable",
    "KnownKeys",
    "NotAtHand",
    "PublishedKeys",
    "Reason",
    "RejectedToken",
    "VerifiedToken",
    "VerifiedTokens",
    "key_sets_of",
    "keys_at_hand",
    "verify",
    "verify_from",
]
