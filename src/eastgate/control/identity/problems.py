"""The errors of identities: one type for each kind, and a message that says what to do."""

from __future__ import annotations


class IdentityError(Exception):
    """An error with an identity, a certificate or a key. No message repeats any part of a key."""


class BadIdentityError(IdentityError):
    """An identity was requested that this CA cannot vouch for."""


class BadBundleError(IdentityError):
    """A text that should hold the root certificates of a trust domain does not."""


class UnknownTrustDomainError(IdentityError):
    """There is no bundle for this trust domain, so nobody in it can be verified."""

    def __init__(self, trust_domain: str, trust_domains: tuple[str, ...]) -> None:
        listed = ", ".join(trust_domains)
        super().__init__(
            f"there are no root certificates for the trust domain {trust_domain!r}, only for {listed}; "
            f"federate with it by adding its bundle"
        )
        self.trust_domain = trust_domain


class SvidExpiredError(IdentityError):
    """The only certificate there is for an identity has expired, and an expired one is never handed out."""


class NotGivenError(IdentityError):
    """The SPIRE agent does not give this process the identity that it needs."""


class MissingNameError(IdentityError):
    """The SPIRE agent gives the identity, but without a DNS name that must be in its certificate."""


class NoWorkloadApiError(IdentityError):
    """The SPIRE agent has given no answer."""


class UnsafeFileError(IdentityError):
    """A file or folder with keys in it that others can read or change."""


class StoredCaError(IdentityError):
    """A stored CA cannot be read back."""


class NoMemoryFileError(IdentityError):
    """This system has no files that are only in memory, so a key would have to be written to a disk."""


class PeerError(IdentityError):
    """The other end of a connection did not prove the identity that it must have."""
