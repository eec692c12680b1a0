"""The logs of Istio's proxies, read line by line."""
