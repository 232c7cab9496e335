import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buckets } from './limits.ts'
import { isIdempotent, problemsOf } from './operation.ts'
import { workOperations } from '../tasks/work.ts'
import { operations } from '../operations.ts'
import { problems } from './problems.ts'

/**
 * One line per operation (decisions D1, D73 and D85): error format, credentials (K key, T token, S session), scope,
 * success status, rate limit.
 */
const table = `
  POST   /api/v1/auth/api-keys                                    agents  KTS api_keys:write 201 api_keys.create
  GET    /api/v1/auth/api-keys                                    agents  KTS api_keys:read  200 api_keys.read
  GET    /api/v1/auth/api-keys/{key_id}                           agents  KTS api_keys:read  200 api_keys.read
  PUT    /api/v1/auth/api-keys/{key_id}                           agents  KTS api_keys:write 200 api_keys.write
  DELETE /api/v1/auth/api-keys/{key_id}                           agents  KTS api_keys:write 200 api_keys.write
  GET    /api/v1/auth/user                                        agents  KTS –              200 user
  PUT    /api/v1/auth/user                                        agents  KTS any_write      200 user
  GET    /api/v1/auth/session                                     agents  TS  –              200 general
  GET    /api/v1/auth/sessions                                    agents  TS  –              200 sessions
  DELETE /api/v1/auth/sessions                                    agents  TS  any_write      200 sessions
  DELETE /api/v1/auth/sessions/{session_id}                       agents  TS  any_write      200 sessions
  GET    /api/v1/auth/permissions                                 agents  KTS –              200 general
  GET    /api/v1/projects/{project_id}/agents                     agents  KTS agents:read    200 agents.list
  POST   /api/v1/projects/{project_id}/agents                     agents  KTS agents:write   201 agents.create
  GET    /api/v1/projects/{project_id}/agents/{agent_id}          agents  KTS agents:read    200 agents.get
  PUT    /api/v1/projects/{project_id}/agents/{agent_id}          agents  KTS agents:write   200 agents.update
  DELETE /api/v1/projects/{project_id}/agents/{agent_id}          agents  KTS agents:write   200 agents.delete
  POST   /api/v1/projects/{project_id}/agents/{agent_id}/start    agents  KTS agents:write   200 agents.action
  POST   /api/v1/projects/{project_id}/agents/{agent_id}/pause    agents  KTS agents:write   200 agents.action
  POST   /api/v1/projects/{project_id}/agents/{agent_id}/stop     agents  KTS agents:write   200 agents.action
  POST   /api/v1/projects/{project_id}/agents/{agent_id}/restart  agents  KTS agents:write   200 agents.action
  GET    /api/v1/projects/{project_id}/agents/{agent_id}/logs     agents  KTS agents:read    200 agents.logs
  GET    /api/v1/projects/{project_id}/agents/{agent_id}/metrics  agents  KTS agents:read    200 agents.metrics
  POST   /api/v1/projects                                         control KTS projects:write 201 general
  GET    /api/v1/projects                                         control KTS projects:read  200 general
  POST   /api/v1/agents                                           control KTS agents:write   201 general
  POST   /api/v1/webhooks                                         control KTS projects:write 201 general
  GET    /api/v1/hello                                            control KTS –              200 general
  GET    /api/v1/status                                           control –   –              200 –
  GET    /api/v1/docs                                             control –   –              200 docs
  GET    /oauth2/authorize                                        oauth   –   –              303 oauth.authorize
  POST   /oauth2/token                                            oauth   –   –              200 oauth.token
  POST   /oauth2/revoke                                           oauth   –   –              200 oauth.revoke
`
const lines = table
  .trim()
  .split('\n')
  .map((line) => line.trim().split(/ +/) as [string, string, string, string, string, string, string])

/** Spec 8.1 and decision D85, general limits and those of single operations: per hour, per minute. */
const documented: Record<string, [hour: number | undefined, minute: number | undefined]> = {
  general: [1000, 100],
  'api_keys.create': [10, undefined],
  'api_keys.read': [undefined, 100],
  'api_keys.write': [undefined, 20],
  user: [undefined, 100],
  sessions: [undefined, 50],
  'agents.list': [undefined, 100],
  'agents.create': [undefined, 10],
  'agents.get': [undefined, 200],
  'agents.update': [undefined, 20],
  'agents.delete': [undefined, 10],
  'agents.action': [undefined, 50],
  'agents.logs': [undefined, 100],
  'agents.metrics': [undefined, 50],
  docs: [undefined, 60],
  'oauth.authorize': [undefined, 20],
  'oauth.token': [undefined, 30],
  'oauth.revoke': [undefined, 30],
}

describe('the operations of the specification', () => {
  for (const [method, path, format, credentials, scope, status, bucket] of lines) {
    it(`${method} ${path} has the decided error format, credentials, scope, status and rate limit`, () => {
      const operation = operations.find((one) => one.method === method && one.path === path)
      assert.ok(operation, 'the operation is not in the contract')
      assert.deepEqual(
        [
          operation.error_format,
          operation.credentials
            .map((kind) => ({ api_key: 'K', token: 'T', session: 'S', lease: 'L' })[kind])
            .join('') || '–',
          operation.scope ?? '–',
          String(operation.responses[0]?.status),
          operation.bucket ?? '–',
          operation.extension ?? false,
        ],
        [format, credentials, scope, status, bucket, false],
      )
    })
  }

  it('the operations of the specification are distinguished from extensions', () => {
    const beyond = operations.filter(
      ({ method, path }) => !lines.some((line) => line[0] === method && line[1] === path),
    )
    assert.deepEqual(
      beyond.filter(({ extension }) => !extension).map(({ id }) => id),
      [],
    )
  })
})

describe('limits', () => {
  for (const [name, [hour, minute]] of Object.entries(documented)) {
    it(`the rate limit ${name} allows ${hour ?? '–'} requests per hour and ${minute ?? '–'} per minute`, () => {
      const bucket: { hour?: number; minute?: number } = buckets[name as keyof typeof buckets]
      assert.deepEqual([bucket.hour, bucket.minute], [hour, minute])
    })
  }
})

describe('every operation', () => {
  for (const operation of operations) {
    it(`${operation.id} names its parameters, is counted if it takes credentials, and succeeds with a declared status`, () => {
      const named = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
      assert.deepEqual(Object.keys(operation.params ?? {}).sort(), named.sort())
      if (operation.credentials.length > 0) assert.notEqual(operation.bucket, null)
      for (const { status } of operation.responses) assert.ok(status >= 200 && status < 400)
      for (const kind of problemsOf(operation)) assert.ok(problems[kind].status >= 400)
    })
  }

  it('every POST with a credential honors Idempotency-Key, except those that return secrets, sign in (decision D98), wait for a server or use a lease', () => {
    const ignoring = operations
      .filter((operation) => operation.method === 'POST' && !isIdempotent(operation))
      .map(({ path }) => path)
    // A stored response is part of the transaction of its work, which must not wait for the network.
    const asking = [
      '/api/v1/projects/{project_id}/tools',
      '/api/v1/projects/{project_id}/tools/{tool_id}/approve',
      '/api/v1/projects/{project_id}/tools/preview',
      '/api/v1/projects/{project_id}/tools/try',
      '/api/v1/projects/{project_id}/credentials/{credential_id}/authorize',
      '/api/v1/model-providers/{model_provider_id}/test',
    ]
    // Each claim returns another call, and each heartbeat a later end of the lease.
    const leasing = [
      '/api/v1/projects/{project_id}/tool-calls/claim',
      '/api/v1/projects/{project_id}/tool-calls/{tool_call_id}/heartbeat',
      // Operations with a lease are fenced by it, and repeating one gives the same response.
      ...workOperations.map(({ path }) => path),
    ]
    for (const path of ignoring.filter((one) => ![...asking, ...leasing].includes(one)))
      assert.match(
        path,
        /^\/(oauth2\/|api\/v1\/auth\/(api-keys|login|logout|signup|oauth-clients|invitations$|sso)(\/|$))/,
      )
    assert.equal(isIdempotent(operations.find(({ id }) => id === 'createProject')!), true)
    assert.equal(
      operations.some((operation) => operation.method !== 'POST' && isIdempotent(operation)),
      false,
    )
  })
})
