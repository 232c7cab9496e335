import assert from 'node:assert/strict'
import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { eventually, startTestService } from '../../server/test/harness.ts'
import { createAgent, createProject } from '../../server/test/fixtures.ts'
import { cadreScript } from '../process.ts'

const root = new URL('../..', import.meta.url).pathname

it('the tool, the program and the requests of the guide to tools on your side run as they stand', async (t) => {
  const service = await startTestService()
  t.after(() => service.stop())
  const project = await createProject(service.send, 'shop')
  const guide = await readFile(join(root, 'docs/guides/client-tools.md'), 'utf8')
  const shells = guide
    .split('```bash\n')
    .slice(1)
    .map((part) => part.split('\n```')[0]!)
  const [register, serve, claim] = shells as [string, string, string]
  const env = {
    ...process.env,
    CADRE_URL: service.url,
    CADRE_BASE_URL: service.url,
    CADRE_API_KEY: service.owner.api_key,
    PROJECT: `proj_${project.id}`,
    NODE_OPTIONS: '',
  }
  const shell = async (text: string): Promise<any> =>
    JSON.parse((await promisify(execFile)('bash', ['-c', text], { env })).stdout || 'null')
  assert.equal((await shell(register)).kind, 'client')
  const path = project.path
  const config = { model: 'builtin/script', tools: ['refund'] }
  const agent = await createAgent(service.send, path, { name: 'cashier', config })
  const calls = [{ name: 'refund', arguments: { order: '4711', amount: 12.5 } }]
  const input = JSON.stringify([{ tool_calls: calls }, { text: '{{tool_result}}' }])
  const give = async () => (await service.send('POST', `${path}/agents/${agent.id}/tasks`, { body: { input } })).body
  const ended = (task: { id: string }) =>
    eventually(async () => {
      const { body } = await service.send('GET', `${path}/tasks/${task.id}?wait=10`)
      return body.status === 'completed' && body
    })

  const folder = await mkdtemp(join(tmpdir(), 'cadre-guide-'))
  t.after(() => rm(folder, { recursive: true }))
  const program = guide.split('```ts\n')[1]!.split('\n```')[0]!
  const file = join(folder, 'serve.ts')
  await writeFile(file, program.replace('@cadre/sdk', join(root, 'sdk/src/client.ts')))
  const child = fork(file, { env, execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const first = await give()
  const { output } = await ended(first)
  assert.equal(output.content, JSON.stringify({ refund: 're_4711_12.5', key: `${first.id}:1` }))
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [0, null])

  const second = await give()
  if (await hasJq()) assert.equal((await shell(claim)).status, 'completed')
  else assert.match(claim, /jq -r/)
  const argv = serve.replaceAll('\\\n', '').split(' ').slice(1)
  await writeFile(join(folder, 'refund.sh'), '#!/bin/sh\necho "{\\"refund\\": \\"$CADRE_TASK_ID\\"}"\n', {
    mode: 0o755,
  })
  const args = argv.map((word) => word.replace('$PROJECT', env.PROJECT))
  const cli = fork(cadreScript, args, {
    cwd: folder,
    env: { ...env, HOME: folder, XDG_CONFIG_HOME: folder },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const third = await give()
  const done = await ended(third)
  assert.deepEqual(JSON.parse(done.output.content), { refund: third.id })
  assert.equal((await ended(second)).status, 'completed')
  cli.kill('SIGTERM')
  assert.deepEqual(await once(cli, 'exit'), [0, null])
})

/** The shell examples read JSON with jq, which is not on every machine. */
async function hasJq(): Promise<boolean> {
  return promisify(execFile)('jq', ['--version']).then(
    () => true,
    () => false,
  )
}
