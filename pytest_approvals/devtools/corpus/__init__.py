"""Corpus of conversations that bad releases of frameworks really stored, linted and reproduced.

    known bug ──► scenario that shows it ──► bad release ──► what it stored ──► lint, reproduce ──► case, table

In a checkout, `python -m pytest_approvals.devtools.corpus.command` plays the rows of `docs/known-bugs.yaml` on their
bad releases, keeps what was stored in `tests/conversations/corpus`, reproduces each case, and writes the page.
"""
