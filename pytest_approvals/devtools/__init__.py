"""Tools for the development of this package, in a checkout only: they are not in the wheel."""
