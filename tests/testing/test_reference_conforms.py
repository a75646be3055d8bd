"""The conformance kit on the reference agent."""

from pytest_approvals.simulation import ReferenceAgent
from pytest_approvals.testing import AdapterTests


class TestReferenceAgent(AdapterTests):
    """The reference agent keeps the contract."""

    adapter = ReferenceAgent
