"""Pure scorers: no clock, no I/O, no floats; what is random comes in as a seed (design section 1, law 3)."""
