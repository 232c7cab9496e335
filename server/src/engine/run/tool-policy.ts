import type { ToolPolicy } from '#contract/tasks/task-lifecycle.ts'
import type { AgentConfig } from '../task.ts'

/**
 * What an agent's configuration says of a tool. Like in `config.tools` the name of a document or a server stands for all
 * of its tools, so `{"github": "ask"}` holds for `github/create_issue` where that has no entry of its own.
 */
export function policyOf({ tool_policies = {} }: Pick<AgentConfig, 'tool_policies'>, name: string): ToolPolicy {
  const said = (of: string): ToolPolicy | undefined =>
    Object.hasOwn(tool_policies, of) ? tool_policies[of] : undefined
  return said(name) ?? said(name.split('/', 1)[0] ?? name) ?? 'auto'
}
