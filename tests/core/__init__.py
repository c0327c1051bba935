"""Tests of turn control's rules: stories, hostile histories, planted bugs."""
