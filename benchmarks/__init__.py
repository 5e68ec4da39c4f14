"""What calls cost (gas.py), how fast a backfill is (indexing.py), and how soon a block is rows (latency.py)."""
