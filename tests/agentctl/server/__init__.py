"""Tests of agentctl."""
