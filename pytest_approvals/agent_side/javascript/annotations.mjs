/** The policy of an application that reads what MCP servers say about their tools. */

/**
 * Return whether a call needs approval, with the defaults of MCP: a tool is taken to write and to destroy.
 *
 * @param {{readOnlyHint?: boolean, destructiveHint?: boolean} | null | undefined} annotations
 */
export function needsApprovalByAnnotations(annotations) {
  return annotations?.readOnlyHint !== true && annotations?.destructiveHint !== false;
}
