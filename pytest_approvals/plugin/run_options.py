"""Run options of users' tests, from the call, the marker, the fixture `approvals_config` and the command line.

What stands closer to the run takes precedence, in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict, cast

import pytest

from pytest_approvals.agent_side.contract.types import Condition
from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.runner.run_context import Gate
from pytest_approvals.scenario.model import AnswerSource, Scenario, Variant
from pytest_approvals.scenario.requirements import VariantRequirements
from pytest_approvals.scenario.vocabulary import DIMENSIONS

if TYPE_CHECKING:
    from pytest_approvals.agent_side.contract.metadata import Facts
    from pytest_approvals.plugin.settings import Settings
    from pytest_approvals.runner.oracles import Oracle

Gates: TypeAlias = AbstractSet[str] | Sequence[str] | Mapping[str, Gate]
"""The tools whose calls need approval; as a mapping, which of their calls do. `Iterable` would take any mapping."""

SerializeMode: TypeAlias = Literal[
    "none",
    "copy",
    "json",
    "native.async_sqlite",
    "native.database",
    "native.file",
    "native.files",
    "native.postgres",
    "native.snapshots",
    "native.sqlite",
]
"""What the state goes through between turns: `native.NAME` is a durable store of the framework, of which adapters of
other packages may have further ones."""

ResumePlace: TypeAlias = Literal["same", "fresh", "cold"]
"""The process that goes on after a save."""

HistoryMode: TypeAlias = Literal["whole", "append"]
"""What the caller keeps of the state."""

Chunking: TypeAlias = Literal[
    "whole",
    "tokens",
    "ids_first",
    "split",
    "interleaved",
    "empty",
    "repeated_ids",
    "late_ids",
    "blank_ids",
    "changing_ids",
]
"""How streamed replies are cut."""

CheckMode: TypeAlias = Literal["raise", "collect"]
"""What happens with a broken requirement."""


class RunOptions(TypedDict, total=False):
    """The options of a run, as the call takes them as arguments; None: not said."""

    agent: str | None
    oracle: Oracle | str | None
    serialize: SerializeMode | None
    resume: ResumePlace | None
    history: HistoryMode | None
    stream: bool | None
    sync: bool | None
    answer: AnswerSource | None
    chunking: Chunking | None
    checks: CheckMode | None
    seed: int | None
    time_limit: float | None


RUN_OPTION_DEFAULTS: Mapping[str, Any] = {
    "agent": None,
    "oracle": None,
    "serialize": "none",
    "resume": "same",
    "history": "whole",
    "stream": False,
    "sync": False,
    "answer": None,
    "chunking": "whole",
    "checks": "raise",
    "seed": 0,
    "time_limit": 30.0,
}
"""All options, and their values if nothing is said."""

_CHECK_MODES = ("raise", "collect")
_DIMENSIONS = {"answer": "source"}


def validate_options(options: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return the options that were said *where* if all of them are valid.

    Raises:
        UsageError: A name or a value is invalid; the message suggests the nearest valid one.
    """
    if not isinstance(options, Mapping):
        raise UsageError(f"Invalid value {options!r} of {where}: expected a mapping of settings")
    for name, value in options.items():
        if name not in RUN_OPTION_DEFAULTS:
            raise UnknownName("setting", name, RUN_OPTION_DEFAULTS, where)
        _validate_option(name, value, where)
    return options


def resolve_options(node: pytest.Item, config: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Return the options of a test, which the arguments of its calls take precedence over."""
    return {name: value for layer in list_layers(node, config, settings) for name, value in layer.options.items()}


class OptionLayer(NamedTuple):
    """Options that were said in one place."""

    where: str
    options: Mapping[str, Any]


Layers: TypeAlias = Sequence[OptionLayer]
"""What was said, the place that is closest to the run last."""

MODE_FIXTURE = "the fixture serialize_mode"


def list_layers(
    node: pytest.Item, config: Mapping[str, Any], settings: Settings, mode: str | None = None
) -> list[OptionLayer]:
    """Return what was said about the runs of a test, without the arguments of its calls.

    Args:
        node: The test.
        config: What the fixture `approvals_config` says.
        settings: The settings of the session.
        mode: What the fixture `serialize_mode` says; None if the test does not use it.

    Raises:
        UsageError: An option is invalid.
    """
    options = {**RUN_OPTION_DEFAULTS, "seed": settings.seed, "time_limit": settings.time_limit}
    # Several values on the command line mean several variants, and a call of a user's test makes one run.
    options |= {_option_of_dimension(name): values[0] for name, values in settings.pinned.items() if len(values) == 1}
    layers = [
        OptionLayer("the command line", options),
        OptionLayer("the fixture approvals_config", validate_options(config, "the fixture approvals_config")),
    ]
    if mode is not None:
        layers.append(OptionLayer(MODE_FIXTURE, validate_options({"serialize": mode}, MODE_FIXTURE)))
    # `iter_markers` begins with the closest one, which has to win.
    marks = reversed(list(node.iter_markers("approvals")))
    return layers + [OptionLayer("the marker approvals", options_from_marker(mark)) for mark in marks]


class _Condition(NamedTuple):
    """What an option other than its default needs to take effect: a value of another option."""

    option: str
    base: str
    is_met: Callable[[Mapping[str, Any]], bool]
    needs: str


_CONDITIONS = (
    _Condition(
        "resume", "serialize", lambda said: said["serialize"] not in ("none", "copy"), "`json` or `native.NAME`"
    ),
    _Condition("history", "serialize", lambda said: said["serialize"] == "json", "`json`"),
    _Condition(
        "answer", "serialize", lambda said: said["answer"] != "restored" or said["serialize"] != "none", "another value"
    ),
    _Condition("answer", "resume", lambda said: said["answer"] != "held" or said["resume"] == "same", "`same`"),
    _Condition("chunking", "stream", lambda said: bool(said["stream"]), "`True`"),
)


def merge_layers(layers: Layers) -> dict[str, Any]:
    """Return the options of a run.

    An option that has no effect beside the others gives way to one that was said closer to the run; so does one of the
    command line, which is meant for scenarios, too.

    Raises:
        UsageError: An option has no effect beside the others.
        pytest.skip.Exception: It has none in the mode that the fixture `serialize_mode` says.
    """
    __tracebackhide__ = True
    options: dict[str, Any] = {}
    levels: dict[str, int] = {}
    for level, layer in enumerate(layers):
        options |= layer.options
        levels |= dict.fromkeys(layer.options, level)
    for condition in _CONDITIONS:
        name, base = condition.option, condition.base
        if options[name] == RUN_OPTION_DEFAULTS[name] or condition.is_met(options):
            continue
        if levels[name] == 0 or levels[name] < levels[base]:
            options[name] = RUN_OPTION_DEFAULTS[name]
            continue
        _refuse(
            f"{name}={options[name]!r} in {layers[levels[name]].where} has no effect with {base}={options[base]!r}; "
            f"set {base} to {condition.needs}",
            is_parametrized=layers[levels[base]].where == MODE_FIXTURE,
        )
    return options


def require_supported(scenario: Scenario, variant: Variant, agent: str, facts: Facts, layers: Layers) -> None:
    """Refuse a variant that the agent cannot run.

    Raises:
        UsageError: The agent cannot run it; the message says what it can do.
        pytest.skip.Exception: It cannot do what the fixture `serialize_mode` says.
    """
    __tracebackhide__ = True
    said = {name: layer.where for layer in layers for name in layer.options}
    # A script that breaks a stream is about the model, which a user's agent asks as it does.
    needed = VariantRequirements(scenario).of(variant) - {"broken_stream", "model_failure"}
    for capability in sorted(needed - facts.abilities):
        kind, _, value = capability.partition(".")
        why = f": {facts.missing[capability]}" if capability in facts.missing else ""
        if kind in ("serialize", "native"):
            modes = ", ".join(list_serialize_modes(facts))
            asked = f"serialize={variant.serialize!r}"
            _refuse(
                f"{agent} cannot do {asked}, which {said['serialize']} asks for{why}; it can do {modes}",
                is_parametrized=said["serialize"] == MODE_FIXTURE,
            )
        raise UsageError(f"{agent} cannot do {_NAMES_OF_CAPABILITIES.get(capability, f'{kind}={value!r}')}{why}")


_NAMES_OF_CAPABILITIES = {"streaming": "stream=True", "fresh": "resume='fresh' or 'cold'"}


def list_serialize_modes(facts: Facts) -> list[str]:
    """Return the serialize modes that an agent can do."""
    own = [mode for mode in ("copy", "json") if f"serialize.{mode}" in facts.capabilities]
    return ["none", *own, *sorted(name for name in facts.capabilities if name.startswith("native."))]


def _refuse(why: str, *, is_parametrized: bool) -> None:
    """Skip the test if it runs in all modes, of which this is one; a test that asks for the mode itself is wrong."""
    __tracebackhide__ = True
    if is_parametrized:
        pytest.skip(why)
    raise UsageError(why)


def options_from_marker(mark: pytest.Mark) -> Mapping[str, Any]:
    """Return the options of a marker `approvals(...)`.

    Raises:
        UsageError: The marker has something else.
    """
    if mark.args:
        raise UsageError(f"the marker approvals takes settings by name, and not {mark.args[0]!r}")
    return validate_options(mark.kwargs, "the marker approvals")


def options_from_call(arguments: RunOptions, where: str) -> Mapping[str, Any]:
    """Return the options that a call says.

    Raises:
        UsageError: A value is invalid.
    """
    return validate_options({name: value for name, value in arguments.items() if value is not None}, where)


def build_variant(options: Mapping[str, Any]) -> Variant:
    """Return the variant of a run.

    If nothing is said about it, decisions are made from restored requests as soon as the state is saved at all.
    """
    answer: AnswerSource = options["answer"] or ("held" if options["serialize"] == "none" else "restored")
    return Variant(
        serialize=options["serialize"],
        resume=options["resume"],
        history=options["history"],
        stream=options["stream"],
        source=answer,
        chunking=options["chunking"],
    )


def _option_of_dimension(dimension: str) -> str:
    return next((option for option, name in _DIMENSIONS.items() if name == dimension), dimension)


def _validate_option(name: str, value: Any, where: str) -> None:
    if value is None:
        return
    if name == "checks" and value not in _CHECK_MODES:
        raise UnknownName("checks", str(value), _CHECK_MODES, where)
    if name == "time_limit" and not (isinstance(value, (int, float)) and value > 0):
        raise UsageError(f"Invalid time_limit {value!r} in {where}: expected a positive number of seconds")
    if name == "sync" and not isinstance(value, bool):
        raise UsageError(f"Invalid sync {value!r} in {where}: expected True or False")
    if name == "oracle":
        validate_oracle(value, where)
    dimension = _DIMENSIONS.get(name, name)
    if dimension not in DIMENSIONS or dimension == "oracle":
        return
    if dimension == "serialize" and str(value).startswith("native."):
        return
    if value not in DIMENSIONS[dimension]:
        raise UnknownName(name, str(value), map(str, DIMENSIONS[dimension]), where)


def read_gates(gated: Gates | None) -> dict[str, Gate] | None:
    """Return which calls need approval, by tool; None if the framework says so.

    Raises:
        UsageError: *gated* is neither names nor conditions and functions by name.
    """
    __tracebackhide__ = True
    if gated is None:
        return None
    if isinstance(gated, str):
        raise UsageError(f"gated= is a set of names: gated={{{gated!r}}}")
    if not isinstance(gated, Mapping):
        return dict.fromkeys(gated, "always")
    return {name: _read_gate(name, gate) for name, gate in gated.items()}


def _read_gate(tool: str, gate: Any) -> Gate:
    __tracebackhide__ = True
    where = f"gated={{{tool!r}: ...}}"
    if isinstance(gate, Condition):
        scripted = [name for name in ("answers", "raises", "waits_for") if getattr(gate, name)]
        if scripted:
            raise UsageError(f"{where}: {scripted[0]}= scripts a policy; describe the agent's by a comparison")
        if gate.argument is None or gate == Condition(argument=gate.argument):
            raise UsageError(f'{where}: expected an argument and a comparison, as in when("amount", greater_than=100)')
        return gate
    if callable(gate) and not isinstance(gate, type):
        return partial(_ask_function, where, gate)
    if gate in ("always", "never"):
        return cast("Gate", gate)
    raise UsageError(
        f"{where} is {gate!r}; expected when(...), a function of the call's arguments, 'always' or 'never'"
    )


def _ask_function(where: str, function: Callable[[Mapping[str, Any]], bool], arguments: Mapping[str, Any]) -> bool:
    answer = function(dict(arguments))
    if not isinstance(answer, bool):
        raise UsageError(f"{where} returned {answer!r} for {dict(arguments)!r}; expected True or False")
    return answer


def validate_oracle(value: Any, where: str) -> None:
    """Refuse what is neither an oracle nor the name of one.

    Raises:
        UsageError: *value* cannot answer requests.
    """
    if isinstance(value, str) or (not isinstance(value, type) and callable(getattr(value, "answer", None))):
        return
    name = getattr(value, "__name__", "")
    hint = f"; call it: {name}()" if name.endswith("_all") else ", such as approve_all() or policy(function)"
    raise UsageError(f"Invalid oracle {value!r} in {where}: expected an oracle{hint}")
