"""What passes between a client and a provider becomes a scenario: `pytest-approvals record`."""
