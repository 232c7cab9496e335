import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Scope } from '#contract/core/scopes.ts'
import { makeKey, makePerson, ownerOf, type Credential } from '../actors.ts'
import { eventually, type TestService } from '../harness.ts'
import { shareTestService } from '../shared-service.ts'

/**
 * The attempts of each kind of caller on resources of others, and their outcomes: the table "Attacks by role" of
 * SECURITY.md.
 */

let test: TestService
/** Of the attacked project, and of another project of the same organization. */
let own: Place
let other: Place
const attackers: Record<string, Credential> = {}

interface Place {
  path: string
  agent_id: string
  schedule_id: string
  task_id: string
  test_case_id: string
  webhook_id: string
}

before(async () => {
  test = await shareTestService()
  own = await makePlace('attacked')
  other = await makePlace('another')
  const { org_id } = ownerOf(test)
  const all: Scope[] = ['admin']
  const of = async (role: 'viewer' | 'member', scopes: Scope[]) => ({
    key: (await makeKey(test, await makePerson(test, role, org_id), scopes)).key,
  })
  attackers.viewer = await of('viewer', all)
  attackers['key with agents:read'] = await of('member', ['agents:read', 'projects:read'])
  attackers['key with tasks:write'] = await of('member', ['tasks:write'])
  attackers['key with tools:execute'] = await of('member', ['tools:execute'])
  attackers['key with approvals:write'] = await of('member', ['approvals:write'])
  attackers.member = await of('member', all)
  attackers.stranger = { key: (await makeKey(test, await makePerson(test), all)).key }
})
after(() => test.stop())

async function makePlace(name: string): Promise<Place> {
  const make = async (at: string, body: object) => {
    const reply = await test.send('POST', at, { body })
    assert.ok(reply.status < 300, JSON.stringify(reply.body))
    return reply.body
  }
  const project = await make('/api/v1/projects', { name })
  const path = `/api/v1/projects/proj_${project.id}`
  const config = { model: 'builtin/echo' }
  const agent = await make(`${path}/agents`, { name: 'one', config })
  const task = await make(`${path}/agents/${agent.id}/tasks?wait=30`, { input: 'Hello.' })
  const schedule = { name: 'nightly', agent_id: agent.id, cron: '0 3 1 1 *', input: 'Hello.' }
  const hook = { url: 'https://example.com/hook', events: ['agent.failed'], secret: 'a secret of the receiver' }
  return {
    path,
    agent_id: agent.id,
    task_id: task.id,
    schedule_id: (await make(`${path}/schedules`, schedule)).id,
    test_case_id: (await make(`${path}/agents/${agent.id}/test-cases`, { name: 'case', input: 'Hello.' })).id,
    webhook_id: (await make('/api/v1/webhooks', hook)).id,
  }
}

type Attack = readonly [method: string, at: (place: Place) => string, body?: object]
const attacks: Record<string, Attack> = {
  'reads a schedule': ['GET', ({ path, schedule_id }) => `${path}/schedules/${schedule_id}`],
  'changes what a schedule asks': [
    'PUT',
    ({ path, schedule_id }) => `${path}/schedules/${schedule_id}`,
    { input: 'evil' },
  ],
  'deletes a schedule': ['DELETE', ({ path, schedule_id }) => `${path}/schedules/${schedule_id}`],
  'runs a schedule now': ['POST', ({ path, schedule_id }) => `${path}/schedules/${schedule_id}/trigger`],
  'retries a task': ['POST', ({ path, task_id }) => `${path}/tasks/${task_id}/retry`, {}],
  'rolls an agent back': ['POST', ({ path, agent_id }) => `${path}/agents/${agent_id}/rollback`, { version: 0 }],
  'reads a test case': [
    'GET',
    ({ path, agent_id, test_case_id }) => `${path}/agents/${agent_id}/test-cases/${test_case_id}`,
  ],
  'changes a test case': [
    'PUT',
    ({ path, agent_id, test_case_id }) => `${path}/agents/${agent_id}/test-cases/${test_case_id}`,
    { input: 'evil' },
  ],
  'reads a webhook': ['GET', ({ webhook_id }) => `/api/v1/webhooks/${webhook_id}`],
  'sends a webhook elsewhere': [
    'PUT',
    ({ webhook_id }) => `/api/v1/webhooks/${webhook_id}`,
    { url: 'https://evil.example/hook' },
  ],
  'takes the secret of a webhook': ['POST', ({ webhook_id }) => `/api/v1/webhooks/${webhook_id}/rotate-secret`, {}],
}

/** The created resources, to check that a refused attack changed nothing. */
async function stateOf({ schedule_id, agent_id, test_case_id, webhook_id }: Place): Promise<unknown> {
  const rows = await test.sql`
    select (select to_jsonb(s) from schedule s where id = ${schedule_id}) as schedule,
      (select to_jsonb(a) - 'last_activity' from agent a where id = ${agent_id}) as agent,
      (select count(*) from task where agent_id = ${agent_id}) as tasks,
      (select to_jsonb(c) from test_case c where id = ${test_case_id}) as test_case,
      (select to_jsonb(w) from webhook w where id = ${webhook_id}) as webhook`
  return rows[0]
}

const outcomes: Record<string, Record<string, number>> = {
  viewer: { read: 200, write: 403 },
  'key with agents:read': { read: 200, write: 403 },
  'key with tasks:write': { read: 403, write: 403, 'retries a task': 201 },
  'key with tools:execute': { read: 403, write: 403 },
  'key with approvals:write': { read: 403, write: 403 },
  stranger: { read: 404, write: 404 },
}

describe('what others made', () => {
  for (const [attacker, expected] of Object.entries(outcomes))
    it(`what others made is read and changed by a ${attacker} only as its role and scopes allow`, async () => {
      const before = await stateOf(own)
      const allowed: string[] = []
      for (const [attack, [method, at, body]] of Object.entries(attacks)) {
        const credential = attackers[attacker]!
        const { status } = await test.send(method, at(own), { ...credential, ...(body && { body }) })
        const usual = method === 'GET' ? expected['read'] : expected['write']
        assert.equal(status, expected[attack] ?? usual, `${attacker} ${attack}`)
        if (method !== 'GET' && status < 300) allowed.push(attack)
      }
      if (allowed.length === 0) assert.deepEqual(await stateOf(own), before)
    })

  it('resources of others are 404 for a member in a path of another project of the organization', async () => {
    const before = [await stateOf(own), await stateOf(other)]
    const mixed: Place = { ...own, path: other.path }
    for (const [attack, [method, at, body]] of Object.entries(attacks).filter(([name]) => !name.includes('webhook'))) {
      const { status } = await test.send(method, at(mixed), { ...attackers.member!, ...(body && { body }) })
      assert.equal(status, 404, attack)
    }
    assert.deepEqual([await stateOf(own), await stateOf(other)], before)
  })

  it('a webhook gets no event of another organization, also if both subscribe to the same event', async () => {
    const hook = { url: 'http://127.0.0.1:9009/hook', events: ['agent.completed'], secret: 'a secret of the receiver' }
    const ours = await test.send('POST', '/api/v1/webhooks', { body: hook })
    assert.equal(ours.status, 201, JSON.stringify(ours.body))
    const theirs = await test.send('POST', '/api/v1/webhooks', {
      ...attackers.stranger!,
      body: {
        url: 'https://evil.example/hook',
        events: ['agent.failed', 'agent.completed'],
        secret: 'a secret of the attacker',
      },
    })
    assert.equal(theirs.status, 201, JSON.stringify(theirs.body))
    const done = await test.send('POST', `${own.path}/agents/${own.agent_id}/tasks?wait=30`, {
      body: { input: 'Hello.' },
    })
    assert.equal(done.body.status, 'completed')
    const deliveries = async (id: string): Promise<number> => {
      const [row] = await test.sql<{ count: number }>`select count(*) as count from delivery where webhook_id = ${id}`
      return row!.count
    }
    await eventually(async () => (await deliveries(ours.body.id)) > 0)
    assert.equal(await deliveries(theirs.body.id), 0)
  })
})
