import { bounds } from '#contract/core/limits.ts'
import type { Caller, CallerTool } from '../../task.ts'
import type { ToolRow } from '../tool-rows.ts'
import { ToolError, type Tool, type Toolset } from '../tool.ts'

/** The default, because the service does not know what the tool does. */
export const clientSafety = 'unsafe'

/** A project's tool of kind `client`: a call waits until a process claims it and sends its result. */
export function clientTool({ name, description, parameters, safety, definition }: ToolRow): Tool {
  const { timeout_seconds = bounds.client_tool_timeout_seconds_default } = definition as { timeout_seconds?: number }
  return {
    name,
    kind: 'client',
    is_projects: true,
    description,
    parameters: parameters ?? { type: 'object', properties: {} },
    safety: safety ?? clientSafety,
    timeout_seconds,
    call: neverCalled,
  }
}

/** A toolset with the tools of the task's caller. The agent's tools take precedence by name. */
export function withCallerTools(toolset: Toolset, caller: Caller | null): Toolset {
  if (!caller?.tools || caller.tools.length === 0) return toolset
  const own = caller.tools.filter(({ name }) => !toolset.tools.has(name))
  const tools = new Map<string, Tool>(toolset.tools)
  for (const tool of own) tools.set(tool.name, ofCaller(tool))
  return { ...toolset, tools }
}

function ofCaller({ result_schema: _, safety = 'safe', ...tool }: CallerTool): Tool {
  return { ...tool, kind: 'client', safety, call: neverCalled }
}

/** Only reached by a bug. */
async function neverCalled(): Promise<never> {
  throw new ToolError('not_callable', 'This tool is called by the client, not by the service.')
}
