"""The chain's edge: typed contract clients over web3, typed data to sign, keys. Every answer is bounded and checked."""
