"""Agents under test: which agent, in which release, started how."""
