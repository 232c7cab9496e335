import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../../server/test/harness.ts'
import { inBrowser } from './chromium.ts'
import { checkScreen, choose, startConsole, type TestConsole } from './console.ts'

let cadre: TestConsole
let project: string
let cashier: string
let boss: string

before(async () => {
  if (inBrowser.skip) return
  cadre = await startConsole()
  project = String((await post('/api/v1/projects', { name: 'shop' })).id)
  const base = `/api/v1/projects/${project}`
  await post(`${base}/tools`, { kind: 'client', name: 'refund', description: 'Pays an order back.' })
  cashier = await agent('cashier', { tools: ['refund'] }, [
    { tool_calls: [{ name: 'refund', arguments: { order: '4711' } }] },
    { text: 'Refund: {{tool_result}}' },
  ])
  boss = await agent('boss', { delegates: [{ agent_id: cashier }] }, [
    { tool_calls: [{ name: 'delegate_cashier', arguments: { input: 'Pay order 4711 back.' } }] },
    { text: 'Done. {{tool_result}}' },
  ])
})
after(() => cadre?.stop())

async function post(path: string, body: object): Promise<any> {
  const answer = await cadre.send('POST', path, { body })
  assert.ok(answer.status < 300, JSON.stringify(answer.body))
  return answer.body
}

async function agent(name: string, config: object, script: object[]): Promise<string> {
  const path = `/api/v1/projects/${project}/agents`
  const { id } = await post(path, {
    name,
    config: { model: 'builtin/script', ...config, system_prompt: JSON.stringify(script) },
  })
  await eventually(async () => (await cadre.send('GET', `${path}/${id}`)).body.status === 'running')
  return id
}

test('a person gives the result of a tool call in its list, and an error in its task', inBrowser, async () => {
  const tasks = `/api/v1/projects/${project}/agents/${cashier}/tasks`
  const first = await post(`${tasks}?wait=10`, { input: 'Pay it back.' })
  const page = await cadre.open(`/p/${project}/tool-calls`)
  const card = page.getByRole('article', { name: 'Call of refund' })
  await card.getByText('"order": "4711"').waitFor()
  await checkScreen(page, 'tool-calls')
  await card.getByLabel('Result, as JSON or text').fill('{"refund":"re_1"}')
  await card.getByRole('button', { name: 'Give result' }).click()
  await page.getByText('No pending tool calls').waitFor()
  await eventually(async () => {
    const { body } = await cadre.send('GET', `/api/v1/projects/${project}/tasks/${first.id}`)
    return body.output?.content === 'Refund: {"refund":"re_1"}'
  })

  const second = await post(`${tasks}?wait=10`, { input: 'Pay it back.' })
  await page.goto(`${cadre.url}/p/${project}/tasks/${second.id}`)
  const region = page.getByRole('region', { name: 'Tool calls that wait for a result' })
  await region.getByLabel('Result, as JSON or text').fill('There is no such order.')
  await region.getByRole('button', { name: 'It failed' }).click()
  await region.waitFor({ state: 'detached' })
  await page.getByText('Refund: There is no such order.').first().waitFor()
})

test('the pages of a delegated task and of its parent link to each other', inBrowser, async () => {
  const task = await post(`/api/v1/projects/${project}/agents/${boss}/tasks?wait=10`, { input: 'Go.' })
  const page = await cadre.open(`/p/${project}/tasks/${task.id}`)
  const tree = page.getByRole('list', { name: 'Tree of tasks' })
  await tree.getByText('boss').waitFor()
  await checkScreen(page, 'task-tree')
  await tree.getByRole('link', { name: 'cashier' }).click()
  const region = page.getByRole('region', { name: 'Tool calls that wait for a result' })
  await region.getByLabel('Result, as JSON or text').fill('re_2')
  await region.getByRole('button', { name: 'Give result' }).click()
  await region.waitFor({ state: 'detached' })
  await page.getByRole('list', { name: 'Tree of tasks' }).getByRole('link', { name: 'boss' }).click()
  await page.getByText('Done. Refund: re_2').first().waitFor()
})

test('the list of tasks shows and filters by the protocol that created a task', inBrowser, async () => {
  await agent('greeter', {}, [{ text: 'Good morning.' }])
  await post('/v1/chat/completions', { model: 'shop/greeter', messages: [{ role: 'user', content: 'Hello' }] })
  const page = await cadre.open(`/p/${project}/tasks`)
  await choose(page, 'Trigger', 'OpenAI Chat Completions')
  await page.waitForURL((url) => url.searchParams.get('door') === 'openai.chat')
  await page.getByRole('navigation', { name: 'Pages of tasks' }).getByText('1 task', { exact: true }).waitFor()
  await page.getByRole('table').getByText('OpenAI Chat Completions').waitFor()
  await checkScreen(page, 'tasks-by-protocol')
  await choose(page, 'Trigger', 'MCP')
  await page.getByText('No matching tasks').waitFor()
})
