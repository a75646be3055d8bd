"""Campaigns: many runs on several releases of an agent, without pytest."""
