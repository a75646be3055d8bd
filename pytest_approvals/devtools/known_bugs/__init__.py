"""
Known-bug recall: does the catalogue find what people have reported?

A table names known bugs, each with a release that has it and one that has not; the catalogue runs on both.
"""
