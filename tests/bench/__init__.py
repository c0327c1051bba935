"""Tests of the benchmarks: that they work and leave nothing, never how fast anything is."""
