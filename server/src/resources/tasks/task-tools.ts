import type { Static } from 'typebox'
import { bounds } from '#contract/core/limits.ts'
import type { Issue } from '#contract/core/problems.ts'
import { isBuiltinTool, type TaskTool } from '#contract/tools/tools.ts'
import type { AgentConfig, CallerTool } from '../../engine/task.ts'
import { clientSafety } from '../../engine/tools/client/client-tools.ts'
import { resultSchemaIssues, schemaIssues } from '../../engine/tools/data-schema.ts'
import { withDelegates } from '../../engine/tools/delegate/delegates.ts'
import { noTools } from '../../engine/tools/tool.ts'
import type { Sql } from '../../platform/postgres/database.ts'

type Given = Static<typeof TaskTool>

/** The tool names of a configuration, including those of delegates. */
export async function agentToolNames(
  sql: Sql,
  project_id: number,
  config: Record<string, unknown>,
): Promise<Set<unknown>> {
  const { tools, delegates = [] } = config as Pick<AgentConfig, 'tools' | 'delegates'>
  const names = Array.isArray(tools) ? tools : []
  if (delegates.length === 0) return new Set(names)
  const delegated = await withDelegates(sql, noTools, project_id, delegates)
  return new Set([...names, ...delegated.tools.keys()])
}

/** Issues with the client tools of a request; `taken` are the agent's tool names. */
export function taskToolIssues(taken: ReadonlySet<unknown>, tools: readonly Given[]): Issue[] {
  const seen = new Set<string>()
  return tools.flatMap(({ name, parameters, result_schema }, at) => {
    const isTwice = seen.has(name)
    seen.add(name)
    const reason = isBuiltinTool(name)
      ? 'is the name of a built-in tool'
      : taken.has(name)
        ? 'is the name of a tool that the agent already has'
        : isTwice
          ? 'is a duplicate'
          : undefined
    return [
      ...(reason === undefined
        ? []
        : [{ field: `tools[${at}].name`, message: reason, code: 'invalid_choice' as const, provided: name }]),
      ...schemaIssues(`tools[${at}].parameters`, parameters),
      ...resultSchemaIssues(`tools[${at}].result_schema`, result_schema),
    ]
  })
}

/** A client tool of a request in the form that the task stores. */
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
