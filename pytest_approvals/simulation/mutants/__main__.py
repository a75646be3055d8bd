"""Surveys the mutants of the catalogue and writes `docs/mutants.md`; takes about a minute."""

from __future__ import annotations

from pathlib import Path

from pytest_approvals.catalogues import stock_folder

from .survey import clean_journals, page, surveyed

if __name__ == "__main__":
    Path("docs/mutants.md").write_text(page(surveyed(clean_journals(stock_folder()))), encoding="utf-8")
