import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { maker } from '../../server/test/contract/full-installation.ts'
import { eventually, sender } from '../../server/test/harness.ts'
import { useServices } from '../cluster/services.ts'
import type { RunningService } from '../process.ts'
import { api_key } from './installations.ts'

const { start, kill } = useServices()
const connect = async ({ url }: RunningService): Promise<Client> => {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  const requestInit = { headers: { authorization: `Bearer ${api_key}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }))
  return client
}

it('a call of an agent by MCP survives kill -9 of its process: another gives its answer by the handle', async () => {
  const a = await start()
  const b = await start()
  const send = sender(b.url, api_key)
  const project = await maker(send)('/api/v1/projects', { name: 'kills' })
  const path = `/api/v1/projects/${project.id}`
  const config = { model: 'builtin/script', doors: { mcp: { published: true } } }
  const agent = await maker(send)(`${path}/agents`, { name: 'script', config })
  await eventually(async () => (await send('GET', `${path}/agents/${agent.id}`)).body.status === 'running')

  const input = JSON.stringify([{ text: 'One ' }, { delay_ms: 1500 }, { text: 'two.' }])
  const here = await connect(a)
  let named = ''
  const called = here.callTool(
    { name: 'ask_script', arguments: { input } },
    { onprogress: ({ message }) => void (named ||= /task_[a-z0-9]+/.exec(message ?? '')?.[0] ?? '') },
  )
  // The answer is lost with the process; this client notices when its own time is over.
  called.catch(() => undefined)
  const task_id = await eventually(async () => named)
  await kill(a)
  const there = await connect(b)
  const answer: any = await eventually(async () => {
    const one: any = await there.callTool({ name: 'wait_task', arguments: { task_id, seconds: 10 } })
    return one.structuredContent.status === 'completed' && one
  })
  assert.equal(answer.content[0].text, 'One two.')
  const { body } = await send('GET', `${path}/tasks`)
  assert.deepEqual(
    body.tasks.map(({ id }: any) => id),
    [task_id],
  )
  await there.close()
  await here.close()
})
