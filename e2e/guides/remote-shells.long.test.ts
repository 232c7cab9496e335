import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { promisify } from 'node:util'
import { eventually, startTestService, type TestService } from '../../server/test/harness.ts'
import { python, withPython } from '../python/python.ts'
import { createProject } from '../../server/test/fixtures.ts'

const root = new URL('../..', import.meta.url).pathname

let service: TestService
let path: string
let env: NodeJS.ProcessEnv
let programs: (language: string) => string[]
before(async () => {
  service = await startTestService()
  const project = await createProject(service.send, 'refunds')
  path = project.path
  env = { ...process.env, CADRE_URL: service.url, CADRE_API_KEY: service.owner.api_key, PROJECT: `proj_${project.id}` }
  const guide = await readFile(join(root, 'docs/guides/remote-agents.md'), 'utf8')
  programs = (language) =>
    [...guide.matchAll(new RegExp(`\`\`\`${language}\n([^]+?)\n\`\`\``, 'g'))].map(([, text]) => text!)
})
after(() => service.stop())

const shell = (text: string) => promisify(execFile)('bash', ['-c', text], { env })
const give = async (agent_id: string): Promise<string> => {
  const { status, body } = await service.send('POST', `${path}/agents/${agent_id}/tasks`, {
    body: { input: 'Refund 4711.' },
  })
  assert.equal(status, 201, JSON.stringify(body))
  return body.id
}
const ended = (id: string) =>
  eventually(async () => {
    const { body } = await service.send('GET', `${path}/tasks/${id}?wait=10`)
    return !['queued', 'running', 'waiting'].includes(body.status) && body
  })

it(
  'the agent and the workers of the guide to remote agents in a shell and in Python run as they stand',
  withPython,
  async (t) => {
    const [create, claim] = programs('bash') as [string, string]
    const agent = JSON.parse((await shell(create)).stdout)
    // Its model has no provider here, which no worker of these asks.
    const first = await give(agent.id)
    await shell(claim)
    assert.equal((await ended(first)).output.content, 'Done by a shell.')

    const worker = spawn(python!, ['-c', programs('python')[0]!], { env, stdio: ['ignore', 'ignore', 'inherit'] })
    t.after(() => worker.kill('SIGKILL'))
    const second = await give(agent.id)
    const waits = await eventually(async () => {
      const { body } = await service.send('GET', `${path}/tasks/${second}`)
      return body.wait?.reason === 'approval' && body.wait
    })
    await service.send('POST', `${path}/approvals/${waits.approval_ids[0]}/resolve`, { body: { decision: 'approve' } })
    const task = await ended(second)
    assert.equal(task.output.content, 'Refunded 12.5.', JSON.stringify(task))
    const { steps } = (await service.send('GET', `${path}/tasks/${second}/steps`)).body
    const refund = steps.find(({ name, type }: Record<string, unknown>) => name === 'refund' && type === 'tool_call')
    assert.deepEqual(
      [refund.status, steps.filter(({ name }: { name: string }) => name === 'look_up').length],
      ['completed', 1],
    )
  },
)
