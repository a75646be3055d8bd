"""Known-bug recall: how many reported bugs the catalogue detects.

A table lists known bugs, each with a release that has it and one that does not; the catalogue runs on both.
"""
