import { isObject, mergePatch } from '#contract/core/merge-patch.ts'
import { patchBetween } from '../../agents/config-diff.ts'
import { tagsOf } from '../../agents/tags.ts'
import { withoutValues } from '../../agents/variables.ts'

/** An agent as it is written down in the form. */
export interface Draft {
  name: string
  description: string
  /** Words by which it is found: `metadata.tags`. */
  tags: readonly string[]
  /** The other members of `metadata` that people gave it. */
  metadata: Record<string, unknown>
  /** Without environment variables, whose values are not shown. */
  config: Record<string, unknown>
  /** Values to set, by name; null removes. What is not here stays. */
  environment: Record<string, string | null>
}

export const emptyDraft: Draft = {
  name: '',
  description: '',
  tags: [],
  metadata: {},
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
  // Those two are set by the service.
  const { tags: _tags, created_by: _creator, version: _version, ...metadata } = agent.metadata
  return { name: agent.name, description: agent.description, tags: tagsOf(agent), metadata, config, environment: {} }
}

/** The body that creates it. */
export function bodyOfNew({ name, description, tags, metadata, config, environment }: Draft) {
  const set = Object.entries(environment).filter(([, value]) => value !== null)
  const own = { ...metadata, ...(tags.length === 0 ? {} : { tags }) }
  return {
    name,
    ...(description === '' ? {} : { description }),
    ...(Object.keys(own).length === 0 ? {} : { metadata: own }),
    config: withVariables(config, Object.fromEntries(set)),
  }
}

/** The body that makes the agent that was read what is written now: only what differs. */
export function bodyOfChange(before: Draft, now: Draft) {
  const tags = hasSameTags(before, now) ? {} : { tags: now.tags.length === 0 ? null : now.tags }
  const metadata = { ...patchBetween(before.metadata, now.metadata), ...tags }
  const config = withVariables(configPatch(before.config, now.config), now.environment)
  return {
    ...(before.name === now.name ? {} : { name: now.name }),
    ...(before.description === now.description ? {} : { description: now.description }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(Object.keys(config).length === 0 ? {} : { config }),
  }
}

/** Members that a change replaces whole: merged by member, two schemas would become a third. */
const replacedWhole = ['input_schema', 'output_schema']

function configPatch(before: Draft['config'], now: Draft['config']): Record<string, unknown> {
  const patch = patchBetween(before, now)
  return { ...patch, ...wholeOf(now, (name) => name in patch && now[name] !== undefined) }
}

function withPatch(config: Draft['config'], patch: Record<string, unknown>): Draft['config'] {
  const merged = mergePatch(config, patch) as Draft['config']
  return { ...merged, ...wholeOf(patch, (name) => name in patch && patch[name] !== null) }
}

/** Those of the members that are replaced whole, as they are. */
function wholeOf(of: Record<string, unknown>, isThere: (name: string) => boolean): Record<string, unknown> {
  return Object.fromEntries(replacedWhole.filter(isThere).map((name) => [name, of[name]]))
}

/** Variables may also be among what was written as JSON. */
function withVariables(
  config: Record<string, unknown>,
  variables: Record<string, string | null>,
): Record<string, unknown> {
  if (Object.keys(variables).length === 0) return config
  const written = config.environment_variables
  return { ...config, environment_variables: { ...(isObject(written) ? written : {}), ...variables } }
}

/** What was written about `before`, brought to what the agent is by now: what was left alone there follows it. */
export function broughtTo(fresh: Draft, before: Draft, written: Draft): Draft {
  return {
    ...fresh,
    name: written.name === before.name ? fresh.name : written.name,
    description: written.description === before.description ? fresh.description : written.description,
    tags: hasSameTags(before, written) ? fresh.tags : written.tags,
    metadata: mergePatch(fresh.metadata, patchBetween(before.metadata, written.metadata)) as Draft['metadata'],
    config: withPatch(fresh.config, configPatch(before.config, written.config)),
    environment: written.environment,
  }
}

function hasSameTags(one: Draft, other: Draft): boolean {
  return one.tags.join('\n') === other.tags.join('\n')
}

/** A body as it is shown: without the values of secrets. */
export function withoutSecrets<T extends { config?: Record<string, unknown> }>(body: T): T {
  return body.config ? { ...body, config: withoutValues(body.config) } : body
}

/** What a draft shows of itself where two are compared, of an agent that has variables of these names. */
export function comparable({ environment, ...shown }: Draft, variables: readonly string[]) {
  // No text, so that it differs from every value that is written.
  const kept = Object.fromEntries(variables.map((name) => [name, []]))
  return { ...shown, environment_variables: { ...kept, ...environment } }
}
