"""The indexer: chain events become versioned rows. It knows nothing of routing."""
