"""The HTTP API: reads of the index, as of any block."""
