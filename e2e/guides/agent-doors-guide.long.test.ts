import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { promisify } from 'node:util'
import { eventually, startTestService, type TestService } from '../../server/test/harness.ts'
import { createProject } from '../../server/test/fixtures.ts'

const root = new URL('../..', import.meta.url).pathname
let service: TestService
let agent: string

before(async () => {
  service = await startTestService({ CADRE_DOORS: 'a2a,agui' })
  const project = await createProject(service.send, 'support')
  const agents = `${project.path}/agents`
  const doors = { a2a: { published: true }, agui: { published: true } }
  const { body } = await service.send('POST', agents, {
    body: { name: 'helper', config: { model: 'builtin/echo', doors } },
  })
  agent = body.id
  await eventually(async () => (await service.send('GET', `${agents}/${agent}`)).body.status === 'running')
})
after(() => service.stop())

/** The programs of a guide in a language, in their order. */
async function programsOf(guide: string, language: 'js' | 'sh'): Promise<string[]> {
  const text = await readFile(join(root, 'docs/guides', guide), 'utf8')
  return [...text.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\n\`\`\``, 'g'))].map(([, program]) => program!)
}

async function runs(command: string, args: string[], more: Record<string, string>): Promise<string> {
  const env = { ...process.env, ...more, CADRE_API_KEY: service.owner.api_key, NODE_OPTIONS: '' }
  const { stdout } = await promisify(execFile)(command, args, { cwd: root, env })
  return stdout
}
const node = (program: string, more: Record<string, string>): Promise<string> =>
  runs(process.execPath, ['--input-type=module', '-e', program], more)

it('the programs of the guide to A2A run as they stand', async () => {
  const A2A_AGENT = `${service.url}/a2a/agents/${agent}`
  const [program] = await programsOf('a2a.md', 'js')
  assert.equal(await node(program!, { A2A_CARD: `${A2A_AGENT}/.well-known/agent-card.json` }), 'Hello')
  const [command] = await programsOf('a2a.md', 'sh')
  const { task } = JSON.parse(await runs('sh', ['-c', command!], { A2A_AGENT }))
  assert.deepEqual([task.status.state, task.artifacts[0].parts], ['TASK_STATE_COMPLETED', [{ text: 'Hello' }]])
})

it('the programs of the guide to AG-UI run as they stand', async () => {
  const AGUI_AGENT = `${service.url}/agui/agents/${agent}`
  const [program, connecting] = await programsOf('ag-ui.md', 'js')
  assert.equal(await node(program!, { AGUI_AGENT }), 'Hello\n')
  // A run is read again by another client, which has nothing but its identifiers.
  const again = `${connecting!}
    const of = { url: process.env.AGUI_AGENT, headers: { authorization: 'Bearer ' + process.env.CADRE_API_KEY }, threadId: 'thread-1' }
    const first = new CadreAgent(of)
    first.addMessage({ id: 'm-1', role: 'user', content: 'Once more' })
    await first.runAgent({ runId: 'run-1' })
    const { newMessages } = await new CadreAgent(of).connectAgent({ runId: 'run-1' })
    console.log(newMessages.at(-1).content)`
  assert.equal(await node(again, { AGUI_AGENT }), 'Once more\n')
})
