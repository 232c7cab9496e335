import { isDeepStrictEqual } from 'node:util'
import {
  agentActions,
  allowedActions,
  settlesTo,
  type AgentAction,
  type AgentState,
} from '#contract/resources/agent-lifecycle.ts'
import type { Reply } from '../harness.ts'
import { mismatch, refusal, Whole, type Expected } from './expected.ts'

/** What a version of an agent keeps. */
export interface Content {
  name: string
  description: string
  config: Record<string, unknown>
}

/** An agent as it may be at one moment. */
export interface Agent {
  /** Null until a first read: a launch does not return it. */
  id: string | null
  status: AgentState
  settles_to: AgentState | null
  revision: number
  /** All there were; the last one is the current one. */
  versions: Content[]
  metadata: Record<string, unknown>
  /** When it was changed last: exactly `is`, or later than `after`. */
  updated: { is: string } | { after: string | null }
}

/** Everything that may be the case; without an agent there is none of the name. */
export type World = Agent | undefined

export type Operation =
  | Naming
  | { kind: 'read'; id: string }
  | { kind: 'versions'; id: string }
  | { kind: AgentAction; id: string; match?: string | undefined }
  | { kind: 'update'; id: string; change: Change; match?: string | undefined }
  | { kind: 'rollback'; id: string; version: number; match?: string | undefined }
  | { kind: 'delete'; id: string; match?: string | undefined }

/** Operations that mean an agent by its name. */
export type Naming =
  | { kind: 'create'; name: string; project: number }
  | { kind: 'launch'; name: string; project: number }

/** The body of an update. Null removes, by JSON Merge Patch. */
export interface Change {
  name?: string
  description?: string | null
  config?: Record<string, unknown>
  metadata?: Record<string, unknown>
}

/** What an operation answers in a world, and the world after it. */
interface Outcome {
  expected: Expected
  after: (reply: Reply) => World
}

/** The name of an agent that is always there. */
export const takenName = 'taken'
/** What an agent is created with; what is not said comes from the defaults (decision D39). */
export const startingConfig = { model: 'builtin/script', temperature: 0.5 }

/**
 * The worlds that explain an answer, of those that were possible before. An agent that is being created or updated may
 * have become stable before it. Throws where no world explains it.
 */
export function explain(worlds: readonly World[], operation: Operation, reply: Reply): World[] {
  const { after, complaints } = step(worlds, operation, reply)
  if (after.length > 0) return after
  throw new Error(`${answerText(operation, reply)}, expected ${complaints.join(' or ')} of ${JSON.stringify(worlds)}`)
}

/** The worlds that explain the answers of two operations at once: either came first. */
export function explainBoth(
  worlds: readonly World[],
  one: { operation: Operation; reply: Reply },
  other: { operation: Operation; reply: Reply },
): World[] {
  const found = [
    [one, other],
    [other, one],
  ].flatMap(
    ([first, second]) =>
      step(step(worlds, first!.operation, first!.reply).after, second!.operation, second!.reply).after,
  )
  if (found.length > 0) return distinct(found)
  const both = [one, other].map(({ operation, reply }) => answerText(operation, reply)).join(' and ')
  throw new Error(`no order explains ${both} of ${JSON.stringify(worlds)}`)
}

/** Each world, and what it may become without a request. */
export function settled(worlds: readonly World[]): World[] {
  return distinct(worlds.flatMap((world) => (world?.settles_to ? [world, settle(world)] : [world])))
}

function step(worlds: readonly World[], operation: Operation, reply: Reply) {
  const after: World[] = []
  const complaints: string[] = []
  for (const world of settled(worlds)) {
    const outcome = attempt(world, operation)
    const complaint = mismatch(outcome.expected, reply)
    if (complaint === undefined) after.push(outcome.after(reply))
    else complaints.push(complaint)
  }
  return { after: distinct(after), complaints }
}

function answerText(operation: Operation, { status, headers, body }: Reply): string {
  return `${JSON.stringify(operation)} answered ${status} ${headers.get('etag') ?? ''} ${JSON.stringify(body)}`
}

function distinct(worlds: readonly World[]): World[] {
  return [...new Map(worlds.map((world) => [JSON.stringify(world ?? null), world])).values()]
}

function settle(agent: Agent): Agent {
  return { ...agent, status: agent.settles_to ?? agent.status, settles_to: null }
}

function attempt(world: World, operation: Operation): Outcome {
  if (operation.kind === 'create') return create(world, operation)
  if (operation.kind === 'launch') return launch(world, operation)
  if (!world || world.id !== operation.id) {
    const details = { resource_type: 'agent', resource_id: operation.id }
    return same(world, refusal(404, 'agent_not_found', details))
  }
  if (operation.kind === 'read') return read(world)
  if (operation.kind === 'versions') return listVersions(world)
  if (operation.kind === 'update' && Object.keys(operation.change).length === 0)
    return same(world, refusal(400, 'validation_error'))
  if (!matches(operation.match, world.revision)) {
    const details = { conflicting_field: 'If-Match', current: `"${world.revision}"` }
    return same(world, refusal(412, 'precondition_failed', details))
  }
  if (operation.kind === 'delete') {
    const body = { message: 'Agent deleted', agent_id: world.id }
    return { expected: { status: 200, body }, after: () => undefined }
  }
  if (operation.kind === 'update') return update(world, operation.change)
  if (operation.kind === 'rollback') return rollBack(world, operation.version)
  return act(world, operation.kind)
}

function same(world: World, expected: Expected): Outcome {
  return { expected, after: () => world }
}

function matches(header: string | undefined, revision: number): boolean {
  if (header === undefined || header === '*') return true
  return header.split(', ').some((tag) => tag.replace('W/', '') === `"${revision}"`)
}

function create(world: World, { name }: { name: string }): Outcome {
  const conflict = { resource_type: 'agent', conflicting_field: 'name', conflicting_value: name }
  if (world && current(world).name === name) return same(world, refusal(409, 'agent_conflict', conflict))
  const content = { name, description: 'made', config: { tools: [], ...startingConfig } }
  const made = newAgent(content, { team: 'a' })
  return {
    expected: { ...view(made), status: 201, revision: 1 },
    after: ({ body }) => ({ ...made, id: body.id, updated: { is: body.updated_at } }),
  }
}

function launch(world: World, { name, project }: { name: string; project: number }): Outcome {
  const body = { message: `Agent '${name}' launched in project ${project}` }
  if (!world || current(world).name !== name) {
    const made = newAgent({ name, description: '', config: { model: 'builtin/script', tools: [] } }, {})
    return { expected: { status: 201, body }, after: () => made }
  }
  const starts = ['paused', 'stopped', 'error'].includes(world.status)
  return { expected: { status: 200, body }, after: () => (starts ? moved(world, 'running') : world) }
}

function newAgent(content: Content, metadata: Record<string, unknown>): Agent {
  return {
    id: null,
    status: 'creating',
    settles_to: 'running',
    revision: 1,
    versions: [content],
    metadata,
    updated: { after: null },
  }
}

function moved(agent: Agent, status: AgentState): Agent {
  return { ...agent, status, settles_to: null, revision: agent.revision + 1, updated: later(agent) }
}

function later({ updated }: Agent): { after: string | null } {
  return 'is' in updated ? { after: updated.is } : updated
}

function current({ versions }: Agent): Content {
  return versions.at(-1)!
}

function act(world: Agent, action: AgentAction): Outcome {
  const agent = settle(world)
  const { from, to, done } = agentActions[action]
  const isThere = agent.status === to
  if (!from.includes(agent.status) && !isThere) {
    return same(
      world,
      refusal(409, 'resource_conflict', {
        resource_type: 'agent',
        resource_id: agent.id,
        conflicting_field: 'status',
        conflicting_value: agent.status,
        allowed: allowedActions(agent.status),
      }),
    )
  }
  const next = from.includes(agent.status) ? moved(agent, to) : agent
  const body = { message: done, agent_id: agent.id, status: to }
  return { expected: { status: 200, body, revision: next.revision }, after: () => next }
}

function read(agent: Agent): Outcome {
  const { updated } = agent
  const seen = view(agent)
  const isTime = (at: string): boolean =>
    'is' in updated ? at === updated.is : updated.after === null || at > updated.after
  return {
    expected: {
      ...seen,
      revision: agent.revision,
      holds: (body) => seen.holds!(body) && isTime(body.updated_at),
    },
    after: ({ body }) => ({ ...agent, updated: { is: body.updated_at } }),
  }
}

/** The agent as it is answered. */
function view({ id, status, versions, metadata }: Agent): Expected {
  const { name, description, config } = versions.at(-1)!
  const version = `1.0.${versions.length - 1}`
  return {
    status: 200,
    body: {
      ...(id === null ? {} : { id }),
      name,
      description,
      status,
      config: new Whole(config),
      metadata: { version },
    },
    holds: ({ metadata: { version: _version, created_by: _by, ...rest } }) => isDeepStrictEqual(rest, metadata),
  }
}

function listVersions(agent: Agent): Outcome {
  const last = agent.versions.length - 1
  const holds = ({ versions }: { versions: { version: number; current: boolean; name: string }[] }): boolean =>
    versions.every(
      ({ version, current: isCurrent, name }, i) =>
        version === last - i && isCurrent === (i === 0) && name === agent.versions[version]!.name,
    )
  // The total is read a moment before the page.
  return same(agent, { status: 200, holds })
}

function update(agent: Agent, change: Change): Outcome {
  const { name, description, config } = current(agent)
  if (change.name === takenName) {
    const conflict = { resource_type: 'agent', conflicting_field: 'name', conflicting_value: takenName }
    return same(agent, refusal(409, 'agent_conflict', conflict))
  }
  const content = {
    name: change.name ?? name,
    description: change.description === undefined ? description : (change.description ?? ''),
    config: { ...merged(config, change.config), model: change.config?.['model'] ?? config['model'] },
  }
  return changed(agent, content, merged(agent.metadata, change.metadata))
}

function rollBack(agent: Agent, version: number): Outcome {
  const content = agent.versions[version]
  if (!content) return same(agent, refusal(404, 'resource_not_found', { resource_type: 'agent_version' }))
  return changed(agent, content, agent.metadata)
}

function merged(one: Record<string, unknown>, patch: Record<string, unknown> = {}): Record<string, unknown> {
  return Object.fromEntries(Object.entries({ ...one, ...patch }).filter(([, value]) => value !== null))
}

function changed(agent: Agent, content: Content, metadata: Record<string, unknown>): Outcome {
  const next: Agent = {
    ...agent,
    status: 'updating',
    settles_to: settlesTo(agent.status) ?? agent.settles_to,
    revision: agent.revision + 1,
    versions: [...agent.versions, content],
    metadata,
    updated: later(agent),
  }
  const seen = view(next)
  const last = 'is' in agent.updated ? agent.updated.is : agent.updated.after
  const holds = (body: { updated_at: string }): boolean =>
    seen.holds!(body) && (last === null || body.updated_at > last)
  return {
    expected: { ...seen, revision: next.revision, holds },
    after: ({ body }) => ({ ...next, updated: { is: body.updated_at } }),
  }
}
