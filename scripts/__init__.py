"""What is run by hand: `ape run SCRIPT`."""
