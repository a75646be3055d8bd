"""Stored conversations: readers, lint, reproduction as scenarios, and the recording proxy."""
