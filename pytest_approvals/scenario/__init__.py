"""Scenarios: the language, its loader, its builders, and the variants of a scenario."""
