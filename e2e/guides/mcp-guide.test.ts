import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { eventually, startTestService } from '../../server/test/harness.ts'
import { createProject } from '../../server/test/fixtures.ts'

const root = new URL('../..', import.meta.url).pathname

it('the program and the configurations of the guide to MCP clients work as they stand', async (t) => {
  const service = await startTestService()
  t.after(() => service.stop())
  const project = await createProject(service.send, 'support')
  const agents = `${project.path}/agents`
  const guide = await readFile(join(root, 'docs/guides/mcp.md'), 'utf8')
  const blocks = (kind: string): string[] =>
    guide
      .split(`\`\`\`${kind}\n`)
      .slice(1)
      .map((part) => part.split('\n```')[0]!.replaceAll('http://localhost:8080', service.url))
  const [published, ...configurations] = blocks('json').map((text) => JSON.parse(text))
  const body = { name: 'helper', config: { model: 'builtin/echo', ...published.config } }
  const agent = (await service.send('POST', agents, { body })).body
  await eventually(async () => (await service.send('GET', `${agents}/${agent.id}`)).body.status === 'running')
  const key = (
    await service.send('POST', '/api/v1/auth/api-keys', {
      body: { name: 'mcp', scopes: ['agents:read', 'tasks:write'] },
    })
  ).body.key
  const env = { ...process.env, CADRE_API_KEY: key, NODE_OPTIONS: '' }
  const args = ['--input-type=module', '-e', blocks('js')[0]!]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env })
  assert.equal(stdout, 'Hello\n')
  // What the clients of the configurations send first.
  for (const configuration of configurations) {
    const { url, headers } = (configuration.mcpServers ?? configuration.servers).cadre
    const authorization = headers.Authorization.replace(/\$\{[^}]+\}/, key)
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    }
    const reply = await fetch(url, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
    })
    assert.equal(reply.status, 200)
    assert.match(await reply.text(), /"protocolVersion":"2025-11-25"/)
  }
})
