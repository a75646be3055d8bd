"""Entry point of `python -m pytest_approvals.devtools.mutants`: writes `docs/mutants.md`; takes about a minute."""

from __future__ import annotations

from pathlib import Path

from pytest_approvals.devtools.mutants.survey import record_clean_journals, render_mutants_page, survey_mutants
from pytest_approvals.scenario.catalogue import stock_folder

if __name__ == "__main__":
    Path("docs/mutants.md").write_text(
        render_mutants_page(survey_mutants(record_clean_journals(stock_folder()))), encoding="utf-8"
    )
