"""Tests of the actor under deterministic schedules."""
