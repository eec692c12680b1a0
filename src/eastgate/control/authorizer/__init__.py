"""The external authorizer: any proxy asks it over gRPC or HTTP whether a request may pass."""
