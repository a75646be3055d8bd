"""Recorder of a client's traffic as scenarios: `pytest-approvals record`."""
