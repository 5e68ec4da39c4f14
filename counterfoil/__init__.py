"""Counterfoil: routing of paid calls to service nodes, with decisions that anyone can replay from chain state."""

from importlib.metadata import version

__version__ = version("counterfoil")
