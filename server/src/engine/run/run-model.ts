import type { ModelTool } from '../models/model.ts'
import type { Run } from './run.ts'
import { policyOf } from './tool-policy.ts'
import type { AgentConfig, Caller } from '../task.ts'

/** The tools offered to the model: all but those that a policy denies or the caller excluded. */
export function offered({ toolset, work: { config, caller } }: Run): ModelTool[] {
  return [...toolset.tools.values()].filter(({ name }) => policyOf(config, name) !== 'deny' && isAllowed(caller, name))
}

/** Whether the caller of a task lets its model call a tool. */
export function isAllowed(caller: Pick<Caller, 'allowed_tools'> | null, name: string): boolean {
  const allowed = caller?.allowed_tools
  return allowed === undefined || allowed.includes(name) || allowed.includes(name.split('/', 1)[0]!)
}

/** The current model: the fallback that took over last, if the configuration still names it. */
export function currentModel({ steps, work: { config } }: Run): string {
  const last = steps.findLast(({ type }) => type === 'model_call')?.name
  return last !== undefined && chainOf(config).includes(last) ? last : config.model
}

/** The models in order, each once: a repeated one would take over from itself forever. */
export function chainOf({ model, fallback_models = [] }: AgentConfig): string[] {
  return [...new Set([model, ...fallback_models])]
}
