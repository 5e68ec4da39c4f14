"""The demo: a market of twelve operators and five agents on a local chain, for real."""
