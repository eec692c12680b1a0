"""What must hold when something breaks, lies, or is too slow: with real Envoys, real mTLS and real signals."""
