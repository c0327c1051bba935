"""Agent protocols. Each adapter turns one protocol into the events of `base`, and nothing more."""
