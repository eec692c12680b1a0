"""The messages of Envoy's external authorization, for those who ask and for those who answer."""
