"""Audit: replay decisions by chain state and by the index, and name the first input that differs (design section 9)."""
