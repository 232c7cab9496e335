import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { eventually, startTestService } from '../../server/test/harness.ts'
import { createProject } from '../../server/test/fixtures.ts'

const root = new URL('../..', import.meta.url).pathname

it('the program of the guide to OpenAI clients runs as it stands', async (t) => {
  const service = await startTestService()
  t.after(() => service.stop())
  const project = await createProject(service.send, 'support')
  const agents = `${project.path}/agents`
  const body = { name: 'helper', config: { model: 'builtin/echo' } }
  const agent = (await service.send('POST', agents, { body })).body
  await eventually(async () => (await service.send('GET', `${agents}/${agent.id}`)).body.status === 'running')
  const guide = await readFile(join(root, 'docs/guides/openai.md'), 'utf8')
  const program = guide.split('```js\n')[1]!.split('\n```')[0]!.replace('http://localhost:8080', service.url)
  const env = { ...process.env, CADRE_API_KEY: service.owner.api_key, NODE_OPTIONS: '' }
  const args = ['--input-type=module', '-e', program]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env })
  assert.equal(stdout, 'Hello\nHello again')
})
