import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import type { Connection } from '#contract/doors/connections.ts'
import { eventually, startTestService, type TestService } from '../../server/test/harness.ts'
import { Runner } from '../test/runner.ts'

const root = new URL('../..', import.meta.url).pathname
const runner = new Runner()
const env = () => ({ ...process.env, CADRE_API_KEY: service.owner.api_key, NODE_OPTIONS: '' })
let service: TestService
let home: string
let agent_id: string
let project: string

before(async () => {
  service = await startTestService({ CADRE_DOORS: 'openai,mcp,a2a,agui' })
  home = await mkdtemp(join(tmpdir(), 'cadre-connect-'))
  project = (await service.send('POST', '/api/v1/projects', { body: { name: 'sams-team' } })).body.id.toString()
  const doors = { mcp: { published: true }, a2a: { published: true }, agui: { published: true } }
  const body = { name: 'helper', config: { model: 'builtin/echo', doors } }
  const path = `/api/v1/projects/${project}/agents`
  agent_id = (await service.send('POST', path, { body })).body.id
  await eventually(async () => (await service.send('GET', `${path}/${agent_id}`)).body.status === 'running')
})
after(async () => {
  runner.stop()
  await service.stop()
  await rm(home, { recursive: true })
})

const cadre = (...args: string[]) =>
  runner.run(['agents', 'connect', ...args, '-p', project], {
    ...{ HOME: home, XDG_CONFIG_HOME: home, CADRE_BASE_URL: service.url, CADRE_API_KEY: service.owner.api_key },
  })
const shown = async (as: string): Promise<{ url: string; connections: Connection[] }> => {
  const { code, stdout, stderr } = await cadre('helper', '--as', as, '--json')
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}
const textOf = (connections: Connection[], client: string): string =>
  connections.find((one) => one.client === client)!.text
const sh = async (text: string): Promise<string> =>
  (await promisify(execFile)('sh', ['-c', text], { env: env() })).stdout
const js = async (text: string): Promise<string> =>
  (await promisify(execFile)(process.execPath, ['--input-type=module', '-e', text], { cwd: root, env: env() })).stdout

test('the printed settings for OpenAI clients work unchanged', async () => {
  const { url, connections } = await shown('openai')
  assert.equal(url, `${service.url}/v1`)
  assert.equal(await js(textOf(connections, 'OpenAI SDK')), 'Hello\n')
  assert.equal(JSON.parse(await sh(textOf(connections, 'curl'))).choices[0].message.content, 'Hello')
  const settings = textOf(connections, 'Other clients')
  assert.equal(await sh(`${settings}\nprintf %s "$OPENAI_MODEL"`), 'sams-team/helper')
})

test('the printed settings for MCP clients have the URL of the agent', async () => {
  const { url, connections } = await shown('mcp')
  assert.equal(url, `${service.url}/mcp/agents/${agent_id}`)
  for (const { text } of connections) assert.ok(text.includes(url))
  for (const { text, language } of connections) if (language === 'json') JSON.parse(text)
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
  const headers = { accept: 'application/json, text/event-stream' }
  assert.equal((await service.send('POST', new URL(url).pathname, { body, headers })).status, 200)
})

test('the printed settings for A2A clients work unchanged', async () => {
  const { url, connections } = await shown('a2a')
  assert.equal(((await (await fetch(url)).json()) as { name: string }).name, 'helper')
  assert.equal(await js(textOf(connections, 'A2A SDK')), 'Hello\n')
  assert.equal(JSON.parse(await sh(textOf(connections, 'curl'))).task.artifacts[0].parts[0].text, 'Hello')
})

test('the printed settings for AG-UI clients work unchanged', async () => {
  const { url, connections } = await shown('agui')
  assert.equal(url, `${service.url}/agui/agents/${agent_id}`)
  assert.equal(await js(textOf(connections, 'AG-UI client')), 'Hello\n')
  assert.match(await sh(textOf(connections, 'curl')), /RUN_FINISHED/)
})

test('settings are printed as text, and a missing or unpublished agent is an error', async () => {
  const { code, stdout } = await cadre(agent_id, '--as', 'openai')
  assert.equal(code, 0)
  assert.match(stdout, /^http\S+\/v1\n\n# OpenAI SDK\nimport OpenAI/)
  const path = `/api/v1/projects/${project}/agents`
  await service.send('POST', path, { body: { name: 'private', config: { model: 'builtin/echo' } } })
  assert.match((await cadre('private', '--as', 'a2a')).stderr, /not published.*"a2a":\{"published":true\}/)
  assert.equal((await cadre('missing', '--as', 'a2a')).code, 2)
  assert.equal((await cadre('helper', '--as', 'smtp')).code, 2)
  assert.equal((await cadre('helper')).code, 2)
})
