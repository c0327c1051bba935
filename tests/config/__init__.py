"""The settings: where they come from, and what a wrong one is told."""
