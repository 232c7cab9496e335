import assert from 'node:assert/strict'
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it, type TestContext } from 'node:test'
import type pg from 'pg'
import { maker } from '../../server/test/contract/full-installation.ts'
import {
  startFakeModelServer,
  type FakeBehaviour,
  type FakeModelServer,
  type FakeRequest,
} from '../../server/test/fake-models/fake-model-server.ts'
import { startLocalServer } from '../../server/test/fakes/local-server.ts'
import { eventually, sender } from '../../server/test/harness.ts'
import { startBalancer, type Balancer } from '../cluster/balancer.ts'
import { startProcess, type RunningService } from '../process.ts'
import { api_key, makeInstallations, type Installations } from '../scenarios/installations.ts'

const root = new URL('../..', import.meta.url).pathname
const model = 'openai/gpt-4o-mini'

let installations: Installations
let balancer: Balancer
let models: FakeModelServer
let database: pg.Client
let env: Record<string, string>
let folder: string
let examples: Record<string, string>
let service: RunningService
let project: string
const workers = new Set<ChildProcess>()

before(async () => {
  installations = await makeInstallations()
  balancer = await startBalancer()
  models = await startFakeModelServer({ strict_as: 'openai' })
  models.always(answerTo)
  folder = await mkdtemp(join(tmpdir(), 'cadre-frameworks-'))
  const guide = await readFile(join(root, 'docs/guides/remote-agents.md'), 'utf8')
  examples = Object.fromEntries(
    [...guide.matchAll(/^With (.+?) \(`npm install [^\n]+\n(?:[^\n]+\n)*?\n```ts\n([^]+?)\n```/gm)].map(
      ([, name, program]) => [name!, program!],
    ),
  )
  await mkdir(join(folder, 'examples'))
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  const external = await installations.external()
  database = external.client
  env = {
    ...external.env,
    CADRE_EGRESS_ALLOW: 'loopback',
    OPENAI_BASE_URL: models.base_url,
    OPENAI_API_KEY: 'sk-fake',
  }
  service = await startProcess(env)
  await balancer.add(service.url)
  project = String((await maker(sender(balancer.url, api_key))('/api/v1/projects', { name: 'frameworks' })).id)
})
after(async () => {
  for (const worker of workers) worker.kill('SIGKILL')
  await service?.end('SIGKILL')
  await models.close()
  await balancer.close()
  await installations.close()
  await rm(folder, { recursive: true })
})

/** The service dies without a word, and another process takes over. */
async function killService(): Promise<void> {
  balancer.remove(service.url)
  await service.end('SIGKILL')
  service = await startProcess(env)
  await balancer.add(service.url)
}

/** A request for a refund that has come and is not answered yet. */
interface Refund {
  order: string
  key: string
  answer(): void
}

const orders = ['4711', '4712']

/** The model refunds one order after the other, and says so in the end. */
function answerTo({ body }: FakeRequest): FakeBehaviour {
  const asked = JSON.stringify(body)
  const next = orders.find((order) => !asked.includes(String.raw`{\"order\":\"${order}\"}`))
  if (next === undefined) return { do: 'answer', text: 'Both orders are refunded.' }
  return { do: 'answer', tool_calls: [{ name: toolOf(body), arguments: { order: next } }] }
}

function toolOf({ tools }: FakeRequest['body']): string {
  const [tool] = tools as { name?: string; function?: { name: string } }[]
  return tool!.name ?? tool!.function!.name
}

/** A system that refunds orders, and answers when the test says so. */
async function startPayments(t: TestContext) {
  const refunds: Refund[] = []
  const { url } = await startLocalServer(t, async (request: IncomingMessage, response: ServerResponse) => {
    const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>)
    const { order } = JSON.parse(Buffer.concat(chunks).toString()) as { order: string }
    response.on('error', () => {})
    const answer = (): void =>
      void response.setHeader('content-type', 'application/json').end(JSON.stringify({ refunded: order }))
    refunds.push({ order, key: String(request.headers['idempotency-key']), answer })
  })
  return { url, refunds, nth: (n: number): Promise<Refund> => eventually(async () => refunds[n - 1], 120_000) }
}

/** Runs an example up to its second refund, with one kill of its worker, and from there to its end. */
async function begin(t: TestContext, framework: string) {
  const program = examples[framework]
  assert.ok(program, `the guide has no example of ${framework}`)
  const queue = framework.replace(/\W+/g, '-').toLowerCase()
  const file = join(folder, 'examples', `${queue}.ts`)
  await writeFile(file, program)
  const payments = await startPayments(t)
  const url = `${payments.url}/refunds`
  const send = sender(balancer.url, api_key)
  const path = `/api/v1/projects/${project}`
  const isOwnTool = framework === 'LangGraph.js'
  const tool = isOwnTool ? 'refund' : `refund_${queue.replaceAll('-', '_')}`
  if (!isOwnTool)
    await maker(send)(`${path}/tools`, {
      ...{ name: tool, description: 'Refunds an order.', kind: 'http', safety: 'keyed' },
      parameters: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
      http: { method: 'POST', url },
    })
  const config = { model, runtime: { kind: 'remote', queue }, ...(!isOwnTool && { tools: [tool] }) }
  const agent = await maker(send)(`${path}/agents`, { name: queue, config })
  await eventually(async () => (await send('GET', `${path}/agents/${agent.id}`)).body.status === 'running')
  const startWorker = (): ChildProcess => {
    const worker = fork(new URL('./framework-worker.ts', import.meta.url), {
      execArgv: [],
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        CADRE_BASE_URL: balancer.url,
        CADRE_API_KEY: api_key,
        MODEL: model,
        PAYMENTS_URL: url,
        WORKER_EXAMPLE: file,
        WORKER_PROJECT: project,
        WORKER_QUEUE: queue,
      },
    })
    workers.add(worker)
    return worker
  }
  const asked = (): FakeRequest[] => models.requests.filter(({ body }) => toolOf(body) === tool)
  const { id } = await maker(send)(`${path}/agents/${agent.id}/tasks`, { input: 'Refund 4711 and 4712.' })

  const worker = startWorker()
  const first = await payments.nth(1)
  assert.deepEqual([framework, first.order, asked().length], [framework, '4711', 1])
  worker.kill('SIGKILL')
  await once(worker, 'exit')
  first.answer()
  // What the service makes goes on without the worker.
  if (!isOwnTool)
    await eventually(async () => (await send('GET', `${path}/tasks/${id}/steps`)).body.steps[1]?.status === 'completed')
  await database.query(`update work set lease_until = now() - interval '1 second' where task_id = $1`, [id])
  startWorker()
  if (isOwnTool) {
    // What the worker was making is begun again, with the same key.
    const again = await payments.nth(2)
    assert.deepEqual([again.order, again.key], [first.order, first.key])
    again.answer()
  }
  const second = await payments.nth(isOwnTool ? 3 : 2)
  assert.deepEqual([framework, second.order, asked().length], [framework, '4712', 2])

  return async function finish(): Promise<void> {
    second.answer()
    if (!isOwnTool) {
      const again = await payments.nth(3)
      assert.deepEqual([again.order, again.key], [second.order, second.key])
      again.answer()
    }
    const task = await eventually(async () => {
      const { body } = await send('GET', `${path}/tasks/${id}`)
      return !['queued', 'running', 'waiting'].includes(body.status) && body
    }, 120_000)
    assert.equal(task.status, 'completed', JSON.stringify(task.error))
    assert.equal(task.output.content, 'Both orders are refunded.')
    assert.equal(asked().length, 3, JSON.stringify(asked()))
    assert.equal(task.usage.by_model[model].calls, 3)
    // The call whose connection was cut counts as a separate one.
    assert.deepEqual([task.usage.tool_calls, payments.refunds.length], [3, 3])
  }
}

it('no call of a model is paid twice in the examples of the guide when their workers and the service are killed', async (t) => {
  const frameworks = ['the AI SDK', 'the OpenAI Agents SDK', 'LangGraph.js']
  const started = await Promise.all(frameworks.map((framework) => begin(t, framework)))
  await killService()
  await Promise.all(started.map((finish) => finish()))
  assert.deepEqual(models.refused, [])
})
