"""Stand-ins for what a test does not start."""
