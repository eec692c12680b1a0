"""Mutation testing: one small error at a time is put into the code that decides, and some test must notice."""
