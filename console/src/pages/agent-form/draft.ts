import { patchBetween } from '../../agents/config-diff.ts'
import { tagsOf } from '../../agents/tags.ts'

/** An agent as it is written down in the form. */
export interface Draft {
  name: string
  description: string
  /** Words by which it is found: `metadata.tags`. */
  tags: readonly string[]
  /** Without environment variables, whose values are not shown. */
  config: Record<string, unknown>
  /** Values to set, by name; null removes. What is not here stays. */
  environment: Record<string, string | null>
}

export const emptyDraft: Draft = {
  name: '',
  description: '',
  tags: [],
  config: { model: 'builtin/echo' },
  environment: {},
}

/** What an agent that is there looks like in the form. */
export function draftOf(agent: {
  name: string
  description: string
  config: object
  metadata: Record<string, unknown>
}): Draft {
  const { environment_variables: _, ...config } = agent.config as Record<string, unknown>
  return { name: agent.name, description: agent.description, tags: tagsOf(agent), config, environment: {} }
}

/** The body that creates it. */
export function bodyOfNew({ name, description, tags, config, environment }: Draft) {
  const set = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== null))
  return {
    name,
    ...(description === '' ? {} : { description }),
    ...(tags.length === 0 ? {} : { metadata: { tags } }),
    config: { ...config, ...(Object.keys(set).length === 0 ? {} : { environment_variables: set }) },
  }
}

/** The body that makes the agent that was read what is written now: only what differs. */
export function bodyOfChange(before: Draft, now: Draft) {
  const config = patchBetween(before.config, now.config)
  if (Object.keys(now.environment).length > 0) config.environment_variables = now.environment
  return {
    ...(before.name === now.name ? {} : { name: now.name }),
    ...(before.description === now.description ? {} : { description: now.description }),
    ...(before.tags.join('\n') === now.tags.join('\n')
      ? {}
      : { metadata: { tags: now.tags.length === 0 ? null : now.tags } }),
    ...(Object.keys(config).length === 0 ? {} : { config }),
  }
}

/** A body as it is shown: without the values of secrets. */
export function withoutSecrets<T extends { config?: Record<string, unknown> }>(body: T): T {
  const variables = body.config?.environment_variables
  if (variables === undefined) return body
  const hidden = Object.keys(variables as object).map((name) => [name, '…'])
  return { ...body, config: { ...body.config, environment_variables: Object.fromEntries(hidden) } }
}

/** What a draft shows of itself where two are compared. */
export function comparable({ name, description, tags, config }: Draft) {
  return { name, description, tags, config }
}
