"""Options of `up` about identities: certificates, trusted domains, and other ways to identify callers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eastgate.basics.records import dataclass
from eastgate.cli.options import bad_option, record

if TYPE_CHECKING:
    from eastgate.control.identity import EmbeddedCa, SvidSource
    from eastgate.envoy.config.tokens import TokenIdentity
    from eastgate.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Identities:
    """The options of the command line about identities."""

    ca: str | None
    spire: str | None
    federate: tuple[str, ...]
    by_address: bool
    token_issuer: str | None
    token_keys: str | None
    token_audience: tuple[str, ...]
    token_claim: str

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """Return the trust domains that are trusted without a bundle: the mesh issues their certificates itself."""
        return tuple(domain for domain in self.federate if "=" not in domain)

    def source(self, settings: Settings) -> SvidSource | None:
        """Return the source of certificates; None for a CA that ends with the mesh."""
        if self.spire is not None:
            if self.ca is not None or self.federate:
                bad_option("--spire has a CA and a federation of its own", "leave --ca and --federate out")
            return self._agent(settings)
        from eastgate.control.identity import EmbeddedCa, IdentityError, read_bundle

        options = (option.partition("=") for option in self.federate)
        bundles = {domain: path for domain, equals, path in options if equals}
        try:
            source = self._authority(settings)
            for domain, path in bundles.items():
                source.federate(domain, read_bundle(path))
            for domain in self.stand_ins:
                EmbeddedCa(domain)
        except (IdentityError, OSError) as error:
            bad_option(str(error), "write --federate partner.example=bundle.pem, and --ca with a folder of your own")
        return source if bundles or self.ca is not None else None

    def _agent(self, settings: Settings) -> SvidSource:
        from eastgate.control.identity import WorkloadApi

        return WorkloadApi(self.spire or "", settings.trust_domain)

    def _authority(self, settings: Settings) -> EmbeddedCa:
        from eastgate.control.identity import EmbeddedCa, stored_ca

        if self.ca is None:
            return EmbeddedCa(settings.trust_domain)
        return stored_ca(Path(self.ca).expanduser(), settings.trust_domain)

    def tokens(self, settings: Settings) -> TokenIdentity | None:
        """Return the accepted token issuers, or None."""
        if self.token_issuer is None and self.token_keys is None:
            return None
        if self.token_issuer is None or self.token_keys is None:
            bad_option("a token needs an issuer and its keys", "write --token-issuer URL --token-keys FILE")
        from eastgate.envoy.config.tokens import TokenIdentity

        try:
            keys = Path(self.token_keys).read_text(encoding="utf-8")
            issuer, domain = self.token_issuer, settings.trust_domain
            return TokenIdentity(issuer, keys, domain, self.token_audience, self.token_claim)
        except (OSError, ValueError) as error:
            bad_option(f"--token-keys: {error}", "give a file with a JSON Web Key Set")


identity_options = record(
    "identities",
    Identities,
    click.option(
        "--ca",
        type=click.Path(file_okay=False),
        metavar="DIR",
        help="Keep the CA in this folder, so that the root stays the same after a restart.",
    ),
    click.option("--spire", metavar="SOCKET", help="Take all certificates from the SPIRE agent at this socket."),
    click.option(
        "--federate",
        multiple=True,
        metavar="DOMAIN[=BUNDLE]",
        help="Trust another trust domain: by its bundle (PEM or JWKS), or with a stand-in.",
    ),
    click.option("--by-address", is_flag=True, help="Identify callers without a certificate by their address."),
    click.option("--token-issuer", metavar="URL", help="Identify all other callers by a token (JWT) of this issuer."),
    click.option("--token-keys", type=click.Path(dir_okay=False), metavar="FILE", help="Keys of this issuer (JWKS)."),
    click.option("--token-audience", multiple=True, metavar="NAME", help="Accepted audience of tokens."),
    click.option("--token-claim", default="sub", show_default=True, metavar="NAME", help="Claim with the SPIFFE ID."),
)
