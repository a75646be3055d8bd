"""Variants that a person asks for, by dimension or by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_approvals.errors import ApprovalsError
from pytest_approvals.scenario.narrow import overrides, variant_from_id
from pytest_approvals.scenario.parts import Variant


def test_options_name_values_of_dimensions() -> None:
    """Words are separated by commas; `--answer` narrows the source."""
    assert {
        "serialize": ("json", "native.sqlite"),
        "source": ("held",),
        "oracle": ("approve_all", "allowlist:read_file,list"),
        "chunking": ("ids_first",),
        "protocol": ("chat", "messages"),
        "stream": (False,),
    } == overrides(
        serialize="json, native.sqlite",
        answer="held",
        oracle="approve-all,allowlist:read_file,list",
        chunking=["ids-first"],
        protocol="chat,messages",
        stream=False,
    )


def test_what_is_not_given_is_not_narrowed() -> None:
    """Without options nothing is narrowed."""
    assert {} == overrides()


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda: overrides(serialize="jsn"), "no serialize mode is called 'jsn'; did you mean 'json'?"),
        (lambda: overrides(answer="kept"), "no answer source is called 'kept'; valid: held, rebuilt, restored"),
        (lambda: overrides(resume="freshh"), "no way to resume is called 'freshh'; did you mean 'fresh'?"),
        (lambda: overrides(history="all"), "no history mode is called 'all'; valid: append, whole"),
        (lambda: overrides(oracle="aprove_all"), "no oracle is called 'aprove_all'; did you mean 'approve_all'?"),
        (lambda: overrides(oracle="random:x"), "the oracle random needs a seed: random:7"),
        (lambda: overrides(oracle="allowlist:"), "the oracle allowlist needs tools: allowlist:read_file,list_files"),
        (lambda: overrides(protocol="message"), "no protocol is called 'message'; did you mean 'messages'?"),
        (lambda: overrides(chunking="token"), "no chunking is called 'token'; did you mean 'tokens'?"),
        (lambda: variant_from_id("jsn-restored"), "no serialize mode is called 'jsn'; did you mean 'json'?"),
        (
            lambda: variant_from_id("json-stream"),
            "'json-stream' is no name of a variant: it lacks held, restored or rebuilt, as in 'json-restored'",
        ),
        (
            lambda: variant_from_id("json-same-restored"),
            "'json-same-restored' is no name of a variant: it lacks held, restored or rebuilt, as in 'json-restored'",
        ),
        (
            lambda: variant_from_id("none-held-aprove-all"),
            "no oracle is called 'aprove_all'; did you mean 'approve_all'?",
        ),
        (
            lambda: variant_from_id("none-stream-whole-held"),
            "'none-stream-whole-held' is no name of a variant; this one is called 'none-stream-held'",
        ),
    ],
)
def test_unknown_words_get_the_nearest_valid_one(ask: Callable[[], object], what: str) -> None:
    """A word that names nothing is refused with what would be right."""
    with pytest.raises(ApprovalsError) as refused:
        ask()

    assert what == str(refused.value)


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("none-held", Variant()),
        ("none-held-approve-all", Variant(oracle="approve_all")),
        ("none-held-approve-all-chat", Variant(oracle="approve_all", protocol="chat")),
        ("json-restored-responses", Variant(serialize="json", source="restored", protocol="responses")),
        ("copy-restored-random:7", Variant(serialize="copy", source="restored", oracle="random:7")),
        (
            "native.sqlite-session-fresh-stream-ids-first-rebuilt",
            Variant(
                serialize="native.sqlite_session", resume="fresh", stream=True, chunking="ids_first", source="rebuilt"
            ),
        ),
        (
            "json-cold-append-restored-allowlist:read-file",
            Variant(serialize="json", resume="cold", history="append", source="restored", oracle="allowlist:read_file"),
        ),
    ],
)
def test_a_variant_is_found_by_its_name(name: str, variant: Variant) -> None:
    """The words in the brackets of an item make the variant again."""
    assert name == variant.id
    assert variant == variant_from_id(name)
