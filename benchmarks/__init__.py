"""What calls cost: `python benchmarks/gas.py` writes gas.md and gas.json."""
