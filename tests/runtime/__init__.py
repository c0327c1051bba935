"""Tests of what runs the rules: actors, effects, booking, recovery."""
