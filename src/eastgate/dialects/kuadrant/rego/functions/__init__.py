"""Built-in functions. Each has been compared with OPA's; one that is not here is not supported."""
