import assert from 'node:assert/strict'
import type { Send } from '../../server/test/harness.ts'
import { observedTools, type World } from './world.ts'

/** Agents with tools, of which one takes a few tasks at a time, and a thread of each. */
export async function makeAgents(
  send: Send,
  { observer_url }: World,
): Promise<{ project: string; agents: string[]; threads: Map<string, string> }> {
  const made = async (path: string, body: unknown): Promise<{ id: string }> => {
    const reply = await send('POST', path, { body })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body
  }
  const project = `/api/v1/projects/${(await made('/api/v1/projects', { name: 'kills' })).id}`
  for (const [name, { safety, method }] of Object.entries(observedTools))
    await made(`${project}/tools`, {
      name,
      description: `A tool that is ${safety}.`,
      kind: 'http',
      safety,
      parameters: { type: 'object', properties: { call: { type: 'string' } }, required: ['call'] },
      http: { method, url: `${observer_url}/${name}` },
    })
  const tools = [...Object.keys(observedTools), 'wait']
  const agents = await Promise.all(
    [{}, {}, {}, { max_concurrent_tasks: 6 }].map((more, i) =>
      made(`${project}/agents`, { name: `agent ${i}`, config: { model: 'fake/model', tools, ...more } }),
    ),
  )
  const threads = agents.map(async ({ id }) => [id, (await made(`${project}/threads`, { agent_id: id })).id] as const)
  return { project, agents: agents.map(({ id }) => id), threads: new Map(await Promise.all(threads)) }
}
