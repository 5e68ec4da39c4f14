"""What an agent runs: choose, open, call, settle, rate, attest."""
