"""The messages of Envoy's external authorization, for clients and servers."""
