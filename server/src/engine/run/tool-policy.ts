import type { ToolPolicy } from '#contract/tasks/task-lifecycle.ts'
import type { AgentConfig } from '../task.ts'

/**
 * The policy of a tool in an agent's configuration. As in `config.tools`, the name of a document or a server applies to
 * all of its tools: `{"github": "ask"}` applies to `github/create_issue` unless that has an entry.
 */
export function policyOf({ tool_policies = {} }: Pick<AgentConfig, 'tool_policies'>, name: string): ToolPolicy {
  const said = (of: string): ToolPolicy | undefined =>
    Object.hasOwn(tool_policies, of) ? tool_policies[of] : undefined
  return said(name) ?? said(name.split('/', 1)[0] ?? name) ?? 'auto'
}
