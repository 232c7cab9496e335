import type { Caller } from '../task.ts'
import { ToolError, type Tool, type Toolset } from './tool.ts'

/** A toolset with the tools of the task's caller. A name that the agent's own tools have stays the agent's. */
export function withCallerTools(toolset: Toolset, caller: Caller | null): Toolset {
  if (!caller?.tools || caller.tools.length === 0) return toolset
  const own = caller.tools.filter(({ name }) => !toolset.tools.has(name))
  const tools = new Map<string, Tool>(toolset.tools)
  for (const tool of own) tools.set(tool.name, { ...tool, kind: 'client', safety: 'safe', call: neverCalled })
  return { ...toolset, tools }
}

/** Reached only through a bug. */
async function neverCalled(): Promise<never> {
  throw new ToolError('not_callable', "This tool is called by the task's caller.")
}
