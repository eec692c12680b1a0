"""The engine: layers compiled to tables, and a reference evaluator to check them against."""
