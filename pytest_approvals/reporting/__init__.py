"""Reports on runs and verdicts: findings, the matrix, and the report as JSON lines, Markdown and HTML.

Everything is made from the lines of the report (`report.py`), so that every form says the same.
"""
