"""Guarantees when a part fails, lies, or is slow: with real Envoys, real mTLS and real signals."""
