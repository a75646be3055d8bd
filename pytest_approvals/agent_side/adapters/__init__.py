"""Adapters, one package for each framework; each offers its flavours in `FLAVOURS`, the default one first.

Importing an adapter never imports its framework: what an adapter says of itself can be read wherever the package is
    installed.
"""
