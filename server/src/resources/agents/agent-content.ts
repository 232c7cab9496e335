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
 * The content of an agent after `body` is applied as a JSON Merge Patch (decision D37); for a creation, to the
 * defaults (decision D39). The merged result must respect the bounds of decision D50. Environment variables that
 * `body` does not name stay encrypted as they are, so that unreadable ones are not lost.
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
  // Callers cannot set or remove the members that the service sets (decision D38).
  delete metadata.created_by
  delete metadata.version
  merged.model ??= default_model
  // Schemas are replaced whole, because a merge of two schemas is meaningless.
  for (const name of schemaMembers) if (isObject(patch[name])) merged[name] = patch[name]
  const { environment_variables, ...config } = merged
  const environment = isObject(environment_variables) ? environment_variables : {}
  const [first, ...others] = [
    // In the form of responses, which omit an empty environment.
    ...check(whole, { config: withEnvironment(config, environment), metadata }),
    // Only given schemas are compiled; stored ones are valid.
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

/** Paths of new unknown members in `config`. They are stored but have no effect (decision D14). */
export function newOpenMembers(body: AgentBody, before: Record<string, unknown> = {}): string[] {
  const known = new Set(openMembers(before))
  return openMembers(body.config ?? {}).filter((path) => !known.has(path))
}

function openMembers(config: object): string[] {
  return unknownMembers(AgentConfigPatch, config).kept
}

/** The log entry about new unknown members. */
export function openMembersEntry(agent_id: string, members: readonly string[]): AgentLogEntry {
  const paths = members.map((path) => `config.${path}`)
  return {
    agent_id,
    level: 'warn',
    message: `Unknown members of the configuration were stored; they have no effect: ${paths.join(', ')}`,
    context: { members: paths },
  }
}

/** The content to which a creation is applied. */
export function emptyContent(id: string, default_model: string) {
  return { id, name: '', description: '', config: { model: default_model, tools: [] }, environment: null, metadata: {} }
}

/**
 * The decrypted environment variables of an agent; undefined if they were encrypted with another secret key.
 * Responses then omit them, and new variables replace them.
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

/** Members of an agent for responses. */
type ShownAgent = Omit<AgentRow, 'settles_to' | 'launch_trigger' | 'revision'>

/** An agent in a response, with prompt and environment variables except in lists (decision D41). */
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

/** The members of an agent for the audit log: those that users set. */
export function auditedAgent(secrets: Secrets, row: ShownAgent) {
  const { status: _, last_activity: __, ...content } = agentView(row, readableEnvironment(secrets, row) ?? {})
  return content
}

/** A configuration with its environment variables, in the form of requests and responses. */
export function withEnvironment(config: Record<string, unknown>, environment: Record<string, unknown>) {
  return Object.keys(environment).length > 0 ? { ...config, environment_variables: environment } : config
}
