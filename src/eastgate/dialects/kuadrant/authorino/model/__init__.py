"""An auth scheme: an AuthConfig of Authorino, in any of its versions.

    identity       ANY one must recognize the caller; those of a lower priority number are asked first
    metadata       more about the request, fetched from elsewhere
    authorization  ALL must agree
    response       headers and metadata about the caller, for the service behind
    callbacks      requests to other servers once it is decided

Everything that a scheme compares is in the authorization JSON: the request, and the findings of the steps before.
"""

from eastgate.dialects.kuadrant.authorino.model.authorizations import (
    Authorization,
    AuthorizationRule,
    FetchedModule,
    PatternRules,
    PermissionCheck,
    Rego,
    SubjectAccess,
)
from eastgate.dialects.kuadrant.authorino.model.conditions import (
    All,
    AnyOf,
    CelPredicate,
    Condition,
    MissingPatterns,
    Pattern,
    PatternOperator,
)
from eastgate.dialects.kuadrant.authorino.model.identities import (
    METHOD_NAMES,
    X509,
    AnonymousAccess,
    ApiKeys,
    CertificateFormat,
    CertificateHeader,
    Credentials,
    Identity,
    Introspection,
    Jwt,
    Method,
    Plain,
    SecretRef,
    TokenReview,
    Where,
)
from eastgate.dialects.kuadrant.authorino.model.metadata import (
    ClientCredentials,
    HttpCall,
    Metadata,
    MetadataSource,
    UmaResources,
    UserInfo,
)
from eastgate.dialects.kuadrant.authorino.model.parts import Part
from eastgate.dialects.kuadrant.authorino.model.responses import (
    Denial,
    Json,
    PlainResponse,
    Response,
    SigningKey,
    Wristband,
)
from eastgate.dialects.kuadrant.authorino.model.scheme import Callback, Scheme
from eastgate.dialects.kuadrant.authorino.model.values import (
    Cache,
    CelExpression,
    LiteralValue,
    Property,
    Selected,
    Value,
)

__all__ = [
    "METHOD_NAMES",
    "X509",
    "All",
    "AnonymousAccess",
    "AnyOf",
    "ApiKeys",
    "Authorization",
    "AuthorizationRule",
    "Cache",
    "Callback",
    "CelExpression",
    "CelPredicate",
    "CertificateFormat",
    "CertificateHeader",
    "ClientCredentials",
    "Condition",
    "Credentials",
    "Denial",
    "FetchedModule",
    "HttpCall",
    "Identity",
    "Introspection",
    "Json",
    "Jwt",
    "LiteralValue",
    "Metadata",
    "MetadataSource",
    "Method",
    "MissingPatterns",
    "Part",
    "Pattern",
    "PatternOperator",
    "PatternRules",
    "PermissionCheck",
    "Plain",
    "PlainResponse",
    "Property",
    "Rego",
    "Response",
    "Scheme",
    "SecretRef",
    "Selected",
    "SigningKey",
    "SubjectAccess",
    "TokenReview",
    "UmaResources",
    "UserInfo",
    "Value",
    "Where",
    "Wristband",
]
