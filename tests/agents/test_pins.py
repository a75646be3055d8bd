"""The pinned releases of the frameworks."""

import re
from pathlib import Path

import pytest

from pytest_approvals.agents.adapters import list_adapter_names, load_flavours
from pytest_approvals.agents.pins import PINS_FILE, get_pin, get_pinned_release, load_pins, parse_pins
from pytest_approvals.errors import FileError

CONSTRAINTS = Path(__file__).parents[2] / "requirements" / "constraints.txt"


def test_the_pins_are_the_locked_versions() -> None:
    """What `make setup` installs is what the stored transcripts are of; the other frameworks stand apart."""
    locked = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE))

    here = {name: version for name, version in locked.items() if name in load_pins()}
    assert {"openai-agents", "pydantic-ai-slim"} <= here.keys()
    assert here == {name: get_pinned_release(name) for name in here}


def test_every_framework_has_a_pin() -> None:
    """Each adapter of this package drives a framework with a pinned release."""
    frameworks = {adapter.framework for name in list_adapter_names() for adapter in load_flavours(name).values()}

    assert set(load_pins()) == {framework for framework in frameworks if framework}


def test_pins_name_no_registry() -> None:
    """Where distributions come from is a matter of the machine."""
    text = PINS_FILE.read_text(encoding="utf-8")

    assert "://" not in text
    assert "index" not in text


def test_an_old_release_gets_its_constraints() -> None:
    """A release that a newer dependency broke is installed with an older one."""
    assert ("openai-agents==0.9.0", "openai==2.26.0") == get_pin("openai-agents").requirements("0.9.0")
    assert ("openai-agents==0.24.0",) == get_pin("openai-agents").requirements("0.24.0")
    assert ("pydantic-ai-slim==1.0.6", "opentelemetry-api==1.38.0") == get_pin("pydantic-ai-slim").requirements("1.0.6")


def test_extras_belong_to_releases() -> None:
    """An extra is installed where the adapter can use it."""
    pin = get_pin("pydantic-ai-slim")

    assert ("pydantic-ai-slim[mcp,dbos,ag-ui]==2.68.0",) == pin.requirements("2.68.0")
    assert ("pydantic-ai-slim[dbos,ag-ui]==2.41.0", "ag-ui-protocol==0.1.22") == pin.requirements("2.41.0")


def test_a_checkout_gets_what_the_pinned_release_gets() -> None:
    """Its extras and what stands beside it, but for what must have its version."""
    assert (("mcp", "dbos", "ag-ui"), ()) == get_pin("pydantic-ai-slim").checkout_requirements()


def test_an_unknown_distribution_needs_nothing() -> None:
    """Somebody's own adapter has no pin."""
    assert get_pinned_release("some-framework") is None
    assert ("some-framework==3",) == get_pin("some-framework").requirements("3")


def test_a_framework_apart_is_locked_for_its_tests_at_its_pin() -> None:
    """`make lock` writes the environments in which the tests of adapters run; each has the pinned releases."""
    files = sorted((CONSTRAINTS.parent / "adapters").glob("*.txt"))
    locked = [*CONSTRAINTS.read_text(encoding="utf-8").splitlines()]
    for file in files:
        text = file.read_text(encoding="utf-8")
        frameworks = {adapter.framework: None for adapter in load_flavours(file.stem).values() if adapter.framework}

        assert "://" not in text
        for name in frameworks:
            assert f"{name}=={get_pinned_release(name)}" in text.splitlines()
            assert not any(line.startswith(f"{name}==") for line in locked)


def test_every_framework_is_locked_somewhere() -> None:
    """Beside the others, or for itself: the tests of every Python adapter run in `make test`."""
    adapters = [name for name in list_adapter_names() if load_flavours(name)[""].framework]
    python = {name for name in adapters if load_flavours(name)[""].registry == "pypi"}
    here = {"openai_agents", "pydantic_ai"}

    assert python - here == {file.stem for file in (CONSTRAINTS.parent / "adapters").glob("*.txt")}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[]", "1: Invalid file: expected a mapping of distributions"),
        ("frame: 1.0", "1: Invalid frame: expected a mapping with `pin`"),
        ("frame:\n  pin: 1.10", "2: Invalid frame.pin: expected a release in quotes"),
        ("frame: {registry: npm}", "1: Invalid frame.pin: expected a release in quotes"),
        ("frame:\n  pin: 1.0.0\n  besides: []", "3: Unknown key 'besides'; did you mean 'beside'?"),
        ("frame:\n  pin: 1.0.0\n  registry: nmp", "3: Unknown registry 'nmp'; did you mean 'npm'?"),
        (
            "frame:\n  pin: 1.0.0\n  beside:\n    - versions: '>=0'\n      with: core<2",
            "5: Invalid frame.beside[0].with: expected a list",
        ),
        (
            "frame: {pin: 1.0.0, beside: [{versions: '=>2'}]}",
            "1: Invalid version range '=>2': expected '>=0.8', '>=1.0,<2' or '==1.*', say",
        ),
        (
            "frame: {pin: 1.0.0, beside: [{versions: '>=0', with: ['core=={release}']}]}",
            "1: Invalid requirement 'core=={release}': the only placeholder is {version}",
        ),
        ("frame: !!python/name:os.system", "1: "),
    ],
    ids=["list", "number", "float", "missing", "key", "registry", "text", "specifier", "placeholder", "tag"],
)
def test_a_mistake_in_a_file_of_pins_is_named(tmp_path: Path, text: str, error: str) -> None:
    """With its line, as in other files of YAML."""
    path = tmp_path / "pins.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(FileError, match=re.escape(f"{path}:{error}")):
        parse_pins(path)
