"""Mutation test of the contracts: `python -m tests.mutation`."""
