from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from pytest_approvals.errors import TranscriptMismatch
from pytest_approvals.journal.transcript_file import parse_transcripts
from pytest_approvals.plugin.snapshot import transcript_name
from pytest_approvals.scenario.model import RestoreStep, Scenario, TogetherStep, TurnStep, Variant

pytest_plugins = ["pytester"]

COLLECTOR = """
import pytest
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.plugin.snapshot import assert_transcript

AGENTS = {agents!r}
VARIANTS = {variants!r}

def pytest_collect_file(file_path, parent):
    if file_path.name.endswith(".approval.yaml"):
        return ScenarioFile.from_parent(parent, path=file_path)

class ScenarioFile(pytest.File):
    def collect(self):
        for agent in AGENTS:
            for variant in VARIANTS:
                yield ScenarioItem.from_parent(self, name=f"{{agent}}[{{variant}}]", callobj=play)

    def transcripts(self):
        return {{agent: {{agent}} for agent in AGENTS}}

class ScenarioItem(pytest.Function):
    pass

def play(request):
    item = request.node
    agent, _, variant = item.name.rstrip("]").partition("[")
    text = item.path.read_text()
    if "skip" in text:
        pytest.skip("asked for")
    told = text.replace("AGENT", agent) + (f"  in {{variant}}\\n" if "differs" in text else "")
    assert_transcript(item, Transcript.parse(told), agent, write=variant == VARIANTS[0])
"""

PLUGINS = ("-p", "syrupy", "-p", "no:cacheprovider")


class Folder:
    """A folder with scenario files and a collector for them."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.root = pytester.path
        self.session()
        for name in ("pay", "refund"):
            self.scenario(name, f"turn 1\n  caller  says {name} to AGENT\n")

    def session(self, agents: tuple[str, ...] = ("one", "two"), variants: tuple[str, ...] = ("base", "json")) -> None:
        self.pytester.makeconftest(COLLECTOR.format(agents=agents, variants=variants))

    def scenario(self, name: str, text: str) -> None:
        (self.root / f"{name}.approval.yaml").write_text(text)

    def stored(self) -> list[str]:
        files = sorted((self.root / "__snapshots__").glob("*.transcripts"))
        return [f"{path.stem}/{name}" for path in files for name in parse_transcripts(path.read_text(), str(path))]

    def path(self, scenario: str) -> Path:
        return self.root / "__snapshots__" / f"{scenario}.transcripts"

    def read(self, name: str) -> str:
        scenario, _, agent = name.partition("/")
        return parse_transcripts(self.path(scenario).read_text(), scenario)[agent].render()

    def run(self, *options: str, plugins: tuple[str, ...] = PLUGINS) -> pytest.RunResult:
        return self.pytester.runpytest_subprocess(*plugins, *options)


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("CI", raising=False)
    return Folder(pytester)


ALL_FOUR = ["pay/one", "pay/two", "refund/one", "refund/two"]


class TestWriting:
    def test_an_update_stores_one_file_a_scenario(self, folder: Folder) -> None:
        """However many variants there are, it holds one transcript an agent, by the base variant."""
        result = folder.run("--snapshot-update")

        result.assert_outcomes(passed=8)
        result.stdout.fnmatch_lines(["4 snapshots generated."])
        assert ALL_FOUR == folder.stored()
        assert "turn 1\n  caller  says pay to one\n" == folder.read("pay/one")

    def test_every_variant_asserts_it(self, folder: Folder) -> None:
        """After an update all variants pass, and the four transcripts count as four snapshots."""
        folder.run("--snapshot-update")

        result = folder.run()

        result.assert_outcomes(passed=8)
        result.stdout.fnmatch_lines(["4 snapshots passed."])

    def test_no_other_variant_writes(self, folder: Folder) -> None:
        """A variant that differs from the base one passes while updating, and fails afterwards."""
        folder.scenario("pay", "turn 1\n  differs\n")
        folder.run("--snapshot-update").assert_outcomes(passed=8)

        result = folder.run()

        result.assert_outcomes(passed=6, failed=2)
        assert "turn 1\n  differs\n  in base\n" == folder.read("pay/one")
        result.stdout.fnmatch_lines(["*-  in base", "*+  in json"])

    def test_a_missing_one_fails_and_says_what_to_do(self, folder: Folder) -> None:
        """Without a stored transcript the variant fails that would write it; the others have nothing to compare."""
        result = folder.run()

        result.assert_outcomes(failed=4, passed=4)
        result.stdout.fnmatch_lines(
            ["*No transcript of one is stored in __snapshots__/pay.transcripts (store it with --snapshot-update)"]
        )
        assert [] == folder.stored()

    def test_a_changed_one_fails_with_the_lines_that_differ(self, folder: Folder) -> None:
        """The failure shows stored and new lines with those around them."""
        folder.run("--snapshot-update")
        folder.scenario("pay", "turn 1\n  caller  says nothing to AGENT\n")

        result = folder.run()

        result.assert_outcomes(passed=4, failed=4)
        result.stdout.fnmatch_lines(
            [
                "*Transcript of one differs from __snapshots__/pay.transcripts (update with --snapshot-update)*",
                "*   turn 1",
                "*  -  caller  says pay to one",
                "*  +  caller  says nothing to one",
            ]
        )
        result.stdout.fnmatch_lines(["2 snapshots failed. 2 snapshots passed."])

    def test_an_update_takes_changes_over(self, folder: Folder) -> None:
        """Updating overwrites what changed and reports it."""
        folder.run("--snapshot-update")
        folder.scenario("pay", "turn 1\n  caller  says nothing to AGENT\n")

        result = folder.run("--snapshot-update")

        result.stdout.fnmatch_lines(["2 snapshots passed. 2 snapshots updated."])
        folder.run().assert_outcomes(passed=8)


class TestNewOnly:
    @pytest.fixture(autouse=True)
    def _needs_the_option(self) -> None:
        import syrupy

        if "update_new_snapshots_only" not in Path(syrupy.__file__).read_text():
            pytest.skip("this syrupy has no --snapshot-update-new-only")

    def test_new_ones_are_stored_and_changed_ones_fail(self, folder: Folder) -> None:
        """The base variant of a changed scenario fails; a new scenario is stored."""
        folder.run("--snapshot-update")
        folder.scenario("pay", "turn 1\n  caller  says nothing to AGENT\n")
        folder.scenario("mail", "turn 1\n  caller  mails AGENT\n")

        result = folder.run("--snapshot-update-new-only")

        result.assert_outcomes(passed=10, failed=2)
        assert "turn 1\n  caller  mails one\n" == folder.read("mail/one")
        assert "turn 1\n  caller  says pay to one\n" == folder.read("pay/one")


class TestUnused:
    def test_one_without_its_scenario_is_reported(self, folder: Folder) -> None:
        """The transcripts of a deleted scenario are unused: the session fails and names them."""
        folder.run("--snapshot-update")
        (folder.root / "refund.approval.yaml").unlink()

        result = folder.run("--snapshot-details")

        assert 1 == result.ret
        result.assert_outcomes(passed=4)
        result.stdout.fnmatch_lines(
            ["2 snapshots passed. 2 snapshots unused.", "*Unused one, two (__snapshots__/refund.transcripts)*"]
        )

    def test_an_update_deletes_it(self, folder: Folder) -> None:
        """Updating deletes what is unused, and the file with the last of them."""
        folder.run("--snapshot-update")
        (folder.root / "refund.approval.yaml").unlink()

        folder.run("--snapshot-update").stdout.fnmatch_lines(["2 snapshots passed. 2 unused snapshots deleted."])

        assert (["pay/one", "pay/two"], False) == (folder.stored(), folder.path("refund").exists())

    def test_an_update_without_clean_up_keeps_it(self, folder: Folder) -> None:
        """`--snapshot-no-cleanup` is obeyed."""
        folder.run("--snapshot-update")
        (folder.root / "refund.approval.yaml").unlink()

        folder.run("--snapshot-update", "--snapshot-no-cleanup")

        assert ALL_FOUR == folder.stored()

    def test_a_warning_is_enough_where_that_is_wanted(self, folder: Folder) -> None:
        """`--snapshot-warn-unused` is obeyed."""
        folder.run("--snapshot-update")
        (folder.root / "refund.approval.yaml").unlink()

        assert 0 == folder.run("--snapshot-warn-unused").ret

    def test_one_that_no_item_can_have_is_unused(self, folder: Folder) -> None:
        """A name that the scenario has no item for, an oracle's that is gone, is unused."""
        folder.run("--snapshot-update")
        with folder.path("pay").open("a") as file:
            file.write("\n# one-reject-all\n\nturn 1\n")

        assert 1 == folder.run().ret
        folder.run("--snapshot-update")
        assert ALL_FOUR == folder.stored()

    def test_agents_that_take_no_part_are_left_alone(self, folder: Folder) -> None:
        """A session with one agent neither reports nor deletes the transcripts of another."""
        folder.run("--snapshot-update")
        folder.session(agents=("one",))

        assert 0 == folder.run().ret
        assert 0 == folder.run("--snapshot-update").ret
        assert ALL_FOUR == folder.stored()

    @pytest.mark.parametrize(
        "selection",
        [
            pytest.param(("-k", "pay"), id="keyword"),
            pytest.param(("pay.approval.yaml",), id="file"),
            pytest.param(("pay.approval.yaml::one[json]",), id="item"),
        ],
    )
    def test_what_was_not_selected_is_left_alone(self, folder: Folder, selection: tuple[str, ...]) -> None:
        """Selecting some items neither reports nor deletes the transcripts of the others."""
        folder.run("--snapshot-update")

        assert 0 == folder.run(*selection).ret
        assert 0 == folder.run(*selection, "--snapshot-update").ret
        assert ALL_FOUR == folder.stored()

    def test_what_was_skipped_is_left_alone(self, folder: Folder) -> None:
        """A skipped scenario keeps its transcripts."""
        folder.run("--snapshot-update")
        folder.scenario("pay", "skip")

        result = folder.run("--snapshot-update")

        result.assert_outcomes(passed=4, skipped=4)
        assert ALL_FOUR == folder.stored()


class TestDamaged:
    def test_a_damaged_file_is_named(self, folder: Folder) -> None:
        """The items that read it fail, and say where it is damaged; the session ends as ever."""
        folder.run("--snapshot-update")
        folder.path("pay").write_text("<<<<<<< HEAD\n")

        result = folder.run()

        result.assert_outcomes(passed=4, failed=4)
        result.stdout.fnmatch_lines(["*pay.transcripts:1: a file of transcripts begins with a heading `# NAME`*"])
        result.stdout.no_fnmatch_line("*INTERNALERROR*")


class TestBesideOtherSnapshots:
    TEST = """
        def test_amber(snapshot):
            assert {"a": 1} == snapshot
    """

    def test_other_extensions_leave_transcripts_alone(self, folder: Folder) -> None:
        """A Python test in the same folder, with syrupy's own snapshots, does not take transcripts for waste."""
        folder.pytester.makepyfile(self.TEST)
        folder.run("--snapshot-update")
        folder.session(agents=("one",))

        assert 0 == folder.run().ret
        assert 0 == folder.run("--snapshot-update").ret
        assert ALL_FOUR == folder.stored()
        assert [*(folder.root / "__snapshots__").glob("*.ambr")]

    def test_their_own_unused_ones_are_still_found(self, folder: Folder) -> None:
        """What is unused of the others is reported as ever."""
        folder.pytester.makepyfile(
            self.TEST + "\n\n        def test_more(snapshot):\n            assert 1 == snapshot\n"
        )
        folder.run("--snapshot-update")
        folder.pytester.makepyfile(self.TEST)

        result = folder.run()

        result.stdout.fnmatch_lines(["5 snapshots passed. 1 snapshot unused."])


class TestOwnTests:
    FIXTURE = """
        import pytest
        from pytest_approvals.journal.transcript import Transcript
        from pytest_approvals.plugin.snapshot import TranscriptExtension

        @pytest.fixture
        def transcript_snapshot(snapshot):
            return snapshot.use_extension(TranscriptExtension)

        class Run:
            def __init__(self, text):
                self.transcript = Transcript.parse(text)
            __hash__ = None
            def __eq__(self, other):
                return NotImplemented
    """

    def test_a_run_equals_its_stored_transcript(self, folder: Folder) -> None:
        """A test of one's own stores its transcript beside it, and compares a run or a transcript with it."""
        folder.pytester.makepyfile(
            self.FIXTURE
            + """
        def test_refund(transcript_snapshot):
            assert Run("turn 1") == transcript_snapshot
            assert Transcript.parse("turn 2") == transcript_snapshot
        """
        )
        folder.run("--snapshot-update", "-k", "test_refund").assert_outcomes(passed=1, deselected=8)

        folder.run("-k", "test_refund").assert_outcomes(passed=1, deselected=8)

        (path,) = (folder.root / "__snapshots__").rglob("test_refund.transcript")
        assert "turn 1\n" == path.read_text()

    def test_anything_else_is_refused(self, folder: Folder) -> None:
        """Something without a transcript is said to have none."""
        folder.pytester.makepyfile(
            self.FIXTURE
            + """
        def test_refund(transcript_snapshot):
            assert 5 == transcript_snapshot
        """
        )

        result = folder.run("-k", "test_refund")

        result.stdout.fnmatch_lines(["*TypeError: a transcript or a run was expected, not int*"])


@pytest.mark.skipif(version("syrupy") < "6", reason="this syrupy does not gather what the workers saw")
class TestAcrossProcesses:
    XDIST = (*PLUGINS, "-p", "xdist", "-n", "2")

    def test_updating_and_asserting(self, folder: Folder) -> None:
        """Under pytest-xdist workers that write to one file lose nothing of each other."""
        folder.run("--snapshot-update", plugins=self.XDIST).stdout.fnmatch_lines(["4 snapshots generated."])
        assert ALL_FOUR == folder.stored()

        result = folder.run(plugins=self.XDIST)

        result.assert_outcomes(passed=8)
        result.stdout.fnmatch_lines(["4 snapshots passed."])

    def test_unused_ones(self, folder: Folder) -> None:
        """Under pytest-xdist unused ones are reported and deleted as in one process."""
        folder.run("--snapshot-update")
        (folder.root / "refund.approval.yaml").unlink()

        assert 1 == folder.run(plugins=self.XDIST).ret
        folder.run("--snapshot-update", plugins=self.XDIST)

        assert ["pay/one", "pay/two"] == folder.stored()

    def test_agents_that_take_no_part(self, folder: Folder) -> None:
        """Under pytest-xdist the transcripts of other agents are left alone, too."""
        folder.run("--snapshot-update")
        folder.session(agents=("two",))

        assert 0 == folder.run("--snapshot-update", plugins=self.XDIST).ret

        assert ALL_FOUR == folder.stored()


class TestWithoutSyrupy:
    def test_nothing_is_asserted(self, folder: Folder) -> None:
        """Whoever leaves syrupy's plugin out gets no snapshot failures."""
        folder.run(plugins=("-p", "no:cacheprovider")).assert_outcomes(passed=8)


PLAIN = Scenario(id="a/plain", title="plain")
BACK = Scenario(id="a/back", title="back", caller=(TurnStep(text="Go"), RestoreStep(name="before")))
DEAD = Scenario(id="a/dead", title="dead", caller=(TurnStep(text="Go", crashes="model"),))
BOTH = Scenario(id="a/both", title="both", caller=(TogetherStep(steps=(TurnStep(), TurnStep())),))


class TestNames:
    @pytest.mark.parametrize(
        ("scenario", "variant", "name"),
        [
            (PLAIN, Variant(), "one.two"),
            (PLAIN, Variant(serialize="native.sqlite", stream=True, source="rebuilt", resume="fresh"), "one.two"),
            (PLAIN, Variant(oracle="approve_all()"), "one.two-approve-all"),
            (PLAIN, Variant(oracle="reject_all('no / never')"), "one.two-reject-all-no-never"),
            (BACK, Variant(serialize="json"), "one.two"),
            (BACK, Variant(serialize="native.sqlite"), "one.two-store"),
            (DEAD, Variant(serialize="json", resume="fresh"), "one.two"),
            (DEAD, Variant(serialize="native.sqlite", resume="fresh"), "one.two-store"),
            (BOTH, Variant(serialize="copy"), "one.two"),
            (BOTH, Variant(), "one.two-live"),
            (BOTH, Variant(oracle="approve_all()"), "one.two-approve-all-live"),
        ],
    )
    def test_variants_share_a_transcript(self, scenario: Scenario, variant: Variant, name: str) -> None:
        """An agent and an oracle have one; who keeps the state matters where turns branch or are cut off."""
        assert name == transcript_name("one.two", scenario, variant)


class TestError:
    def test_what_differs_is_in_the_message(self) -> None:
        """The error holds path and lines, and is an assertion that fails."""
        error = TranscriptMismatch("one", "a.transcripts", ["-x", "+y"])

        assert isinstance(error, AssertionError)
        assert "Transcript of one differs from a.transcripts (update with --snapshot-update)\n  -x\n  +y" == str(error)
