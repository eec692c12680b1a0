"""Tokens: who a caller is, from a JWT that an issuer signed (RFC 7519 in the compact form of RFC 7515).

The signatures and key formats are `joserfc`'s; everything around them is here, because an authorizer must be stricter
than a general library: one serialization, one reading of the text, no key that the token itself brings along, and an
answer for every text. Importing this package loads neither joserfc nor an HTTP client: the first key set does.

- `Keys` are what an issuer publishes, `Expectations` what a policy asks of a token, and `verify` compares;
- a `KeySource` says which keys an issuer has now: `KnownKeys` from files, `DiscoveredKeys` by OpenID Connect
  discovery. `verify_from` asks it, once more where a token names a key that is not there yet.

The issuer to ask comes from the policy, never from the token.
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
