"""Tests of the house itself: its checks work, its rules hold, its manifest is complete."""
