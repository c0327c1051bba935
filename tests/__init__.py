"""Tests of Kandev: each name reads as a sentence about the product."""
