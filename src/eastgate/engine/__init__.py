"""The engine: layers compiled to tables, and the naive evaluator that they are checked against."""
