"""The pinned releases of the frameworks."""

import re
from pathlib import Path

from pytest_approvals.agents import adapter_names, flavours
from pytest_approvals.pins import PINS

CONSTRAINTS = Path(__file__).parents[1] / "requirements" / "constraints.txt"


def test_the_pins_are_the_locked_versions() -> None:
    """What `make setup` installs is what the stored transcripts are of."""
    locked = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE))

    assert {name: locked.get(name) for name in PINS} == PINS


def test_every_framework_has_a_pin() -> None:
    """Each adapter of this package drives a framework with a pinned release."""
    frameworks = {adapter.framework for name in adapter_names() for adapter in flavours(name).values()}

    assert set(PINS) == {framework for framework in frameworks if framework}
