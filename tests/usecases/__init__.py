"""Tests of what one can ask for."""
