import assert from 'node:assert/strict'
import type { Rng } from '../../../server/test/rng.ts'
import { makeKey, makePerson } from '../../../server/test/actors.ts'
import { eventually, sender } from '../../../server/test/harness.ts'
import type { Sql } from '../../../server/src/platform/postgres/database.ts'
import type { Tenant } from './driver.ts'

const callersEach = 4
const registersEach = 3
const actorsEach = 2

/** Two organizations, each with keys, a project and agents that have its canary in them. */
export async function makeTenants(sql: Sql, url: string, rng: Rng): Promise<Tenant[]> {
  return Promise.all(['first', 'second'].map((name) => makeTenant(sql, url, name, rng.between(1e6, 9e6))))
}

async function makeTenant(sql: Sql, url: string, name: string, number: number): Promise<Tenant> {
  const canary = `canary-${name}-${number}`
  const owner = await makePerson({ sql })
  const keys = await Promise.all(Array.from({ length: callersEach }, () => makeKey({ sql }, owner, ['admin'])))
  const send = sender(url, keys[0]!.key)
  const make = async (path: string, body: object): Promise<{ id: string }> => {
    const reply = await send('POST', path, { body })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body
  }
  const { id } = await make('/api/v1/projects', { name: canary })
  const project = `/api/v1/projects/proj_${id}`
  const agents: string[] = []
  for (let i = 0; i < registersEach + actorsEach; i++) {
    const agent = await make(`${project}/agents`, { name: `${canary}-kept-${i}`, description: '' })
    agents.push(agent.id)
  }
  for (const agent of agents)
    await eventually(async () => (await send('GET', `${project}/agents/${agent}`)).body.status === 'running')
  return {
    name,
    canary,
    project,
    callers: keys.map(({ key }) => ({ organization: name, api_key: key })),
    registers: agents.slice(0, registersEach),
    actors: agents.slice(registersEach),
  }
}
