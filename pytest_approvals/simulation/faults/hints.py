"""Faults of annotations: what MCP servers say about their tools, which a policy of the application reads."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_approvals.agent_side.contract.types import ToolSpec
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference.state import ConversationState


class LostAnnotationsLetAllRun(Fault):
    """What the servers say does not reach the policy, which lets all tools run about which it knows nothing."""

    source = ("lobu-ai/lobu#688",)
    caught_by = "approval-before-execution"

    def read_annotations(self, conversation: ConversationState, spec: ToolSpec) -> Mapping[str, bool] | None:
        return {"readOnlyHint": True}


class SilenceIsTakenForHarmless(Fault):
    """A tool that its server does not call destructive runs without a question, though it is by default."""

    source = ("openai/codex#15519", "simonx1/ruby-mcp-client#140", "truefoundry/trueforge#318")
    caught_by = "approval-before-execution"

    def read_annotations(self, conversation: ConversationState, spec: ToolSpec) -> Mapping[str, bool] | None:
        return {"destructiveHint": False, **(spec.annotations or {})}


class HarmlessToolsAreTakenForDestructive(Fault):
    """The default of an annotation replaces what the server says, so that harmless calls wait, too."""

    source = ("patvice/ruby_llm-mcp#143",)
    caught_by = "only-gated-asked"

    def read_annotations(self, conversation: ConversationState, spec: ToolSpec) -> Mapping[str, bool] | None:
        said = spec.annotations or {}
        return {**said, "destructiveHint": said.get("destructiveHint") or True}


class AnnotationsAreKnownByName(Fault):
    """Of two servers that offer a tool of one name, what the first one says counts for both."""

    source = ("openai/openai-agents-python#4256",)
    caught_by = "approval-before-execution"

    def read_annotations(self, conversation: ConversationState, spec: ToolSpec) -> Mapping[str, bool] | None:
        return next(tool.annotations for tool in self.blueprint.tools if tool.name == spec.name)
