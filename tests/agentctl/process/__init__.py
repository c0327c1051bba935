"""Tests of process ownership."""
