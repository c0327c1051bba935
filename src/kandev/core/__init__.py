"""Pure rules. Standard library only: no I/O, no clock, no randomness, no logging, no async."""
