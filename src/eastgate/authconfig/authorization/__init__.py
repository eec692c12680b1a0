"""What must be so: one module for each way to say it."""

from eastgate.authconfig.authorization.agreement import agreed

__all__ = ["agreed"]
