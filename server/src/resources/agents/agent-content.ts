import Type from 'typebox'
import { AgentConfigInput, AgentConfigPatch, MetadataInput } from '#contract/resources/agents.ts'
import { isObject, mergePatch } from '#contract/core/merge-patch.ts'
import { invalid } from '#contract/core/problems.ts'
import { projectId } from '#contract/core/project-id.ts'
import { readEnvironment } from '../../engine/run/environment.ts'
import { schemaIssues } from '../../engine/tools/data-schema.ts'
import type { AgentLogEntry } from '../../events/agent-log.ts'
import { unknownMembers } from '../../http/unknown/unknown-members.ts'
import { check } from '../../http/validation.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import type { AgentContent, AgentRow } from './agents.queries.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** The body of a creation or an update, as the contract allows it. */
export interface AgentBody {
  name?: string | undefined
  description?: string | null | undefined
  config?: object | undefined
  metadata?: Record<string, unknown> | undefined
}

const schemaMembers = ['input_schema', 'output_schema'] as const
const whole = Type.Object({ config: AgentConfigInput, metadata: MetadataInput })

/**
 * What an agent consists of after `body` is applied to what it was, by JSON Merge Patch (decision D37). Creation is
 * the same, applied to the defaults (decision D39). What is merged must keep the bounds of decision D50 as a whole. Environment variables
 * that `body` does not name stay as they are kept, so that what cannot be read is not lost.
 */
export function applyBody(
  body: AgentBody,
  before: {
    id: string
    name: string
    description: string
    config: Record<string, unknown>
    environment: Buffer | null
    metadata: Record<string, unknown>
  },
  default_model: string,
  secrets: Secrets,
): AgentContent {
  const patch: Record<string, unknown> = { ...body.config }
  const known = readableEnvironment(secrets, before) ?? {}
  const merged = mergePatch({ ...before.config, environment_variables: known }, patch) as Record<string, unknown>
  const metadata = mergePatch(before.metadata, body.metadata ?? {}) as Record<string, unknown>
  // The service's own members are never the caller's to set or remove (decision D38).
  delete metadata.created_by
  delete metadata.version
  merged.model ??= default_model
  // A schema that is half of one and half of another is neither.
  for (const name of schemaMembers) if (isObject(patch[name])) merged[name] = patch[name]
  const { environment_variables, ...config } = merged
  const environment = isObject(environment_variables) ? environment_variables : {}
  const [first, ...others] = [
    // As it will be answered: an environment without variables is no part of it.
    ...check(whole, { config: withEnvironment(config, environment), metadata }),
    // Only those that are given: what is stored already need not be tried again.
    ...schemaMembers.flatMap((name) => schemaIssues(`config.${name}`, patch[name])),
  ]
  if (first) throw invalid(first, ...others)

  const encrypted = (): Buffer | null =>
    Object.keys(environment).length === 0
      ? null
      : secrets.encrypt(secretLabels.agent_environment, JSON.stringify(environment), before.id)
  return {
    name: (body.name ?? before.name).normalize('NFC'),
    description: body.description === undefined ? before.description : (body.description ?? ''),
    config,
    environment: Object.hasOwn(patch, 'environment_variables') ? encrypted() : before.environment,
    metadata,
  }
}

/** Paths in `config` that the service does not know and that were not there before: they are kept and have no effect (decision D14). */
export function newOpenMembers(body: AgentBody, before: Record<string, unknown> = {}): string[] {
  const known = new Set(openMembers(before))
  return openMembers(body.config ?? {}).filter((path) => !known.has(path))
}

function openMembers(config: object): string[] {
  return unknownMembers(AgentConfigPatch, config).kept
}

/** The entry of an agent's log that tells of new open members. */
export function openMembersEntry(agent_id: string, members: readonly string[]): AgentLogEntry {
  const paths = members.map((path) => `config.${path}`)
  return {
    agent_id,
    level: 'warn',
    message: `Unknown members of the configuration were stored; they have no effect: ${paths.join(', ')}`,
    context: { members: paths },
  }
}

/** What an agent starts from. */
export function emptyContent(id: string, default_model: string) {
  return { id, name: '', description: '', config: { model: default_model, tools: [] }, environment: null, metadata: {} }
}

/**
 * The environment variables of an agent, in the clear; undefined where they were kept with another secret key. Such an
 * agent is shown without them, and new ones take their place.
 */
export function readableEnvironment(
  secrets: Secrets,
  agent: Pick<AgentRow, 'id' | 'environment'>,
): Record<string, string> | undefined {
  try {
    return readEnvironment(secrets, agent.id, agent.environment)
  } catch {
    return undefined
  }
}

/** What of an agent is shown. */
type ShownAgent = Omit<AgentRow, 'settles_to' | 'launch_trigger' | 'revision'>

/** An agent as family A answers it; with its prompt and environment variables everywhere but in lists (decision D41). */
export function agentView(row: ShownAgent, environment?: Record<string, string>) {
  const { system_prompt: _prompt, ...listed } = row.config
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    project_id: projectId(row.project_id),
    status: row.status,
    config: environment ? withEnvironment(row.config, environment) : listed,
    metadata: { ...row.metadata, created_by: row.created_by, version: `1.0.${row.version}` },
    created_at: row.created_at,
    updated_at: row.updated_at,
    last_activity: row.last_activity,
  }
}

/** An agent as the audit log compares it: what people decide about it. */
export function auditedAgent(secrets: Secrets, row: ShownAgent) {
  const { status: _, last_activity: __, ...content } = agentView(row, readableEnvironment(secrets, row) ?? {})
  return content
}

/** A configuration with its environment variables, as the two are given and answered. */
export function withEnvironment(config: Record<string, unknown>, environment: Record<string, unknown>) {
  return Object.keys(environment).length > 0 ? { ...config, environment_variables: environment } : config
}
