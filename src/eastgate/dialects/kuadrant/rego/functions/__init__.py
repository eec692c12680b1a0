"""Built-in functions. Each was compared with OPA's; other functions are not supported."""
