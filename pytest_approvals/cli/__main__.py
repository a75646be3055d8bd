"""`python -m pytest_approvals.cli` is `pytest-approvals`."""

import sys

from pytest_approvals.cli import main

sys.exit(main())
