import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { eventually, type TestService } from '../../server/test/harness.ts'
import { shareTestService } from '../../server/test/shared-service.ts'
import { Runner } from '../test/runner.ts'
import { createProject } from '../../server/test/fixtures.ts'

let service: TestService
let home: string
let env: Record<string, string>
let path: string
let agent_id: string
const runner = new Runner()
before(async () => {
  service = await shareTestService()
  home = await mkdtemp(join(tmpdir(), 'cadre-approvals-'))
  const project = await createProject(service.send, 'approvals')
  path = project.path
  const config = {
    model: 'builtin/script',
    tools: ['run_javascript'],
    tool_policies: { run_javascript: 'ask' },
  }
  const { body: agent } = await service.send('POST', `${path}/agents`, { body: { name: 'careful', config } })
  agent_id = agent.id
  env = {
    HOME: home,
    XDG_CONFIG_HOME: home,
    CADRE_BASE_URL: service.url,
    CADRE_API_KEY: service.owner.api_key,
    CADRE_PROJECT: String(project.id),
  }
})
after(async () => {
  runner.stop()
  await service.stop()
  await rm(home, { recursive: true })
})

/** Creates a task with a call that needs an approval, decides it by a command, and returns the task's answer. */
async function decided(args: (approval_id: string) => string[]): Promise<string> {
  const input = JSON.stringify([
    { tool_calls: [{ name: 'run_javascript', arguments: { code: '6 * 7' } }] },
    { text: 'It is {{tool_result}}.' },
  ])
  const { body: task } = await service.send('POST', `${path}/agents/${agent_id}/tasks`, { body: { input } })
  const asked = await eventually(async () => {
    const { code, stdout, stderr } = await runner.run(['approvals', 'list', '--status', 'pending', '--json'], env)
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout).find(({ task_id }: any) => task_id === task.id)
  })
  assert.deepEqual(asked.arguments, { code: '6 * 7' })
  const { code, stderr } = await runner.run(args(asked.id), env)
  assert.equal(code, 0, stderr)
  const ended = await eventually(async () => {
    const { body } = await service.send('GET', `${path}/tasks/${task.id}`)
    return body.status === 'completed' && body
  })
  const again = await runner.run(args(asked.id), env)
  assert.equal(again.code, 1, 'it is decided once')
  return ended.output.content
}

test('an approved call is made with its arguments', async () => {
  assert.equal(await decided((id) => ['approvals', 'approve', id]), 'It is 42.')
})

test('an approved call is made with edited arguments', async () => {
  const edited = ['--arguments', '{"code":"6 * 8"}', '--reason', 'Eight.']
  assert.equal(await decided((id) => ['approvals', 'approve', id, ...edited]), 'It is 48.')
  const none = await runner.run(['approvals', 'approve', 'appr_1', '--arguments', '[]'], env)
  assert.equal(none.code, 2, 'arguments are an object')
})

test('the model reads the reason of a denied call', async () => {
  const reason = 'We do not multiply here.'
  assert.match(await decided((id) => ['approvals', 'deny', id, '--reason', reason]), /We do not multiply here/)
})
