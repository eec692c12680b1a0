"""Istio: AuthorizationPolicy, RequestAuthentication and PeerAuthentication, at sidecars, ztunnel and waypoints."""
