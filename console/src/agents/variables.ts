import { isObject } from '#contract/core/merge-patch.ts'

/** What stands in the place of a secret's value. */
const hidden = '…'

/** A configuration as it is shown: with the names of environment variables, whose values are mostly secrets, and not the values. */
export function withoutValues(config: Record<string, unknown>): Record<string, unknown> {
  const variables = config.environment_variables
  if (!isObject(variables)) return config
  const shown = Object.entries(variables).map(([name, value]) => [name, value === null ? null : hidden])
  return { ...config, environment_variables: Object.fromEntries(shown) }
}

/** Whether a member of an agent, by its path, is an environment variable or all of them. */
export function isVariable(path: string): boolean {
  return /(^|\.)environment_variables(\.|$)/.test(path)
}
