"""A small gRPC server on asyncio: unary calls, and responses as streams. See `server`."""
