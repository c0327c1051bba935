"""Tests of the board's use cases, asked through the HTTP door."""
