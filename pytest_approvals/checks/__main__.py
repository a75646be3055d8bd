"""`python -m pytest_approvals.checks`, in a checkout: writes `docs/checks.md` anew."""

from __future__ import annotations

from pathlib import Path

from .page import checks_page

if __name__ == "__main__":
    Path("docs/checks.md").write_text(checks_page(), encoding="utf-8")
