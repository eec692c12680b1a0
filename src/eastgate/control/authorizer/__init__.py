"""The external authorizer: any proxy asks over gRPC or HTTP whether a request may pass, and the engine answers."""
