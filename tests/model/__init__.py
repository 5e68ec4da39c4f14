"""A plain model of the contracts: what each call must do, in dictionaries and integers, and nothing of how.

Every class stands for one contract and has its external functions by name, each with the sender first. A call that must
fail raises `Reverted` with the reason that the contract must give. Sources: design section 3 and docs/specification.md.
"""
