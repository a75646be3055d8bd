"""Recorder of the traffic between a client and a provider as scenarios: `pytest-approvals record`."""
