import assert from 'node:assert/strict'
import type { Operation } from '#contract/core/operation.ts'
import { resourceTypes } from '#contract/core/resource-types.ts'
import { operations } from '#contract/operations.ts'
import type { Sql } from '../../src/platform/postgres/database.ts'
import type { Credential } from '../actors.ts'
import type { Send } from '../harness.ts'

/** All responses of an API to reads, by path, so that two services can be compared. */
export type RecordedReads = Map<string, string>

/** Operations whose responses cannot be compared, and why. */
const incomparable: Record<string, string> = {
  streamProjectEvents: 'does not end',
  streamTaskEvents: 'does not end while its task has not',
  getStatus: 'state of the process',
  getSystem: 'state and settings of the process',
  listRequests: 'lists the reads themselves',
  getDocs: 'names the port that the process listens on',
  getRateLimits: 'tells what was spent of windows of a minute, which a restore does not keep',
  getApiKeyActivity: 'lists the reads themselves',
  authorize: 'a page for people',
  startSso: 'leads elsewhere',
  finishSso: 'comes from elsewhere',
  finishCredentialAuthorization: 'comes from elsewhere',
  getCredentialClient: 'names the port that the process listens on',
}

/** Members that change by reading, by time, or while a task runs. */
const volatile = new Set([
  ...['timestamp', 'request_id', 'last_used_at', 'last_used', 'last_ip', 'last_active', 'last_activity', 'usage_stats'],
  ...['cpu_usage', 'memory_usage', 'checked_at'],
])

/** Rows of resources that belong to a project, each in the table of its type. */
const rowsOfProjects = Object.keys(resourceTypes).map((type) => [
  ['project_id', `${type}_id`].toSorted().join(' '),
  `select project_id, id as ${type}_id from ${type}`,
])

/** Which rows the parameters of a path name, by the names of the parameters in the order of the alphabet. */
const rows: Record<string, string> = {
  ...Object.fromEntries(rowsOfProjects),
  '': 'select',
  project_id: 'select id as project_id from project',
  'agent_id project_id': 'select project_id, id as agent_id from agent',
  'agent_id project_id version':
    'select a.project_id, a.id as agent_id, v.version from agent_version v join agent a on a.id = v.agent_id',
  'project_id task_id':
    'select project_id, id as task_id from task where exists (select from agent where id = agent_id)',
  'project_id thread_id': 'select project_id, id as thread_id from thread',
  'approval_id project_id': 'select project_id, id as approval_id from approval',
  'project_id schedule_id': 'select project_id, id as schedule_id from schedule',
  'delivery_id project_id trigger_id': 'select project_id, trigger_id, id as delivery_id from trigger_delivery',
  'agent_id project_id test_case_id':
    'select a.project_id, c.agent_id, c.id as test_case_id from test_case c join agent a on a.id = c.agent_id',
  'file_id project_id': 'select project_id, id as file_id from file where sha256 is not null',
  key_id: 'select id as key_id from api_key where revoked_at is null',
  user_id: 'select user_id from member',
  client_id: 'select client_id from oauth_client',
  webhook_id: 'select id as webhook_id from webhook',
  model_provider_id: 'select id as model_provider_id from model_provider',
  'delivery_id webhook_id': 'select webhook_id, id as delivery_id from delivery',
}

/**
 * Asks every operation that reads for everything that there is: each row by its id, each list in pages and by each of the
 * words that it can be narrowed by; series reach to `until`. Fails where an operation names rows of which it knows nothing.
 */
export async function recordReads(
  sql: Sql,
  send: Send,
  credentials: Record<'api_key' | 'token' | 'session', Credential>,
  until: Date,
): Promise<RecordedReads> {
  const recorded: RecordedReads = new Map()
  for (const operation of operations) {
    if (operation.method !== 'GET' || operation.id in incomparable) continue
    const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
    const query = rows[names.toSorted().join(' ')]
    assert.ok(
      query !== undefined,
      `${operation.id}: say in server/test/contract/recorded-reads.ts which rows its path names`,
    )
    const { rows: found } = await sql.query(query)
    const kind = (['api_key', 'token', 'session'] as const).find((each) => operation.credentials.includes(each))
    for (const row of found) {
      const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(row[name]))
      for (const search of searches(operation, until)) {
        const reply = await send('GET', `${path}${search}`, kind ? credentials[kind] : { key: null })
        assert.ok(reply.status < 500, `${path}${search} ${reply.status}`)
        recorded.set(`${path}${search}`, `${reply.status} ${JSON.stringify(reply.body, withoutVolatile)}`)
      }
    }
  }
  return recorded
}

/** Queries of an operation: none, pages, and each value of each enumeration. */
function searches({ query }: Operation, until: Date): string[] {
  const { properties = {} } = (query ?? {}) as { properties?: Record<string, { enum?: unknown[] }> }
  const has = (name: string): boolean => Object.hasOwn(properties, name)
  // Otherwise the requested period moves with the clock.
  const period = has('end_time')
    ? [`start_time=${new Date(until.getTime() - 3 * 3_600_000).toISOString()}`, `end_time=${until.toISOString()}`]
    : []
  const narrowed = [
    ...(has('limit') ? [['limit=1']] : []),
    ...(has('limit') && has('offset') ? [['limit=2', 'offset=1']] : []),
    ...Object.entries(properties).flatMap(([name, { enum: values = [] }]) =>
      values.map((word) => [`${name}=${encodeURIComponent(String(word))}`]),
    ),
  ]
  return [[], ...narrowed].map((members) => [...period, ...members].join('&')).map((text) => text && `?${text}`)
}

function withoutVolatile(key: string, value: unknown): unknown {
  if (volatile.has(key)) return '…'
  // The last used come first, and reading uses one.
  if (key === 'sessions' && Array.isArray(value))
    return value.toSorted((a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1))
  // A task that ran is given back by the first process that finds its worker gone, which writes nothing else.
  const isRunning = typeof value === 'object' && value !== null && 'status' in value && value.status === 'running'
  return isRunning && 'updated_at' in value ? { ...value, updated_at: '…' } : value
}
