import type { Static } from 'typebox'
import { bounds } from '#contract/core/limits.ts'
import type { Issue } from '#contract/core/problems.ts'
import { isBuiltinTool, type TaskTool } from '#contract/tools/tools.ts'
import type { CallerTool } from '../../engine/task.ts'
import { clientSafety } from '../../engine/tools/client/client-tools.ts'
import { schemaIssues } from '../../engine/tools/data-schema.ts'

type Given = Static<typeof TaskTool>

/** What is wrong with the tools that a request gives its task; `agentTools` are the names that its agent has already. */
export function taskToolIssues(agentTools: unknown, tools: readonly Given[]): Issue[] {
  const taken = new Set(Array.isArray(agentTools) ? agentTools : [])
  const seen = new Set<string>()
  return tools.flatMap(({ name, parameters, result_schema }, at) => {
    const isTwice = seen.has(name)
    seen.add(name)
    const reason = isBuiltinTool(name)
      ? 'is the name of a tool of the service itself'
      : taken.has(name)
        ? 'is the name of a tool that the agent has already'
        : isTwice
          ? 'is given twice'
          : undefined
    return [
      ...(reason === undefined
        ? []
        : [{ field: `tools[${at}].name`, message: reason, code: 'invalid_choice' as const, provided: name }]),
      ...schemaIssues(`tools[${at}].parameters`, parameters),
      ...schemaIssues(`tools[${at}].result_schema`, result_schema),
    ]
  })
}

/** A tool of a request as the task keeps it. */
export function callerTool({
  parameters = { type: 'object', properties: {} },
  kind: _kind,
  strict: _strict,
  ...tool
}: Given): CallerTool {
  return {
    safety: clientSafety,
    timeout_seconds: bounds.client_tool_timeout_seconds_default,
    ...tool,
    parameters,
  }
}
