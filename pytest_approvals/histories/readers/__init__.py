"""The readers, a format a module; `formats.py` says which there are."""
