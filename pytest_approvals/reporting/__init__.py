"""
What is shown of runs and verdicts: findings, the matrix, and the report as JSON lines, JUnit, Markdown and HTML.

Everything is made from the lines of the report (`lines.py`), so that every form says the same.
"""
