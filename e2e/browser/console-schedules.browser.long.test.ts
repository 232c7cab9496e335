import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { maker } from '../../server/test/contract/full-installation.ts'
import { eventually } from '../../server/test/harness.ts'
import { checkPage, checkScreen, choose, chooseAgent, pick, startConsole, type TestConsole } from './console.ts'
import { inBrowser } from './chromium.ts'

let cadre: TestConsole
let project: string
let base: string
let agent: string
let provider: Server | undefined
let make: ReturnType<typeof maker>

before(async () => {
  if (inBrowser.skip) return
  // It takes no key, so that it has something to tell.
  provider = createServer((_, response) => void response.writeHead(401).end('{}')).listen(0, '127.0.0.1')
  await once(provider, 'listening')
  const { port } = provider.address() as AddressInfo
  cadre = await startConsole({ CADRE_PROVIDER_LOCAL_BASE_URL: `http://127.0.0.1:${port}/v1` })
  make = maker(cadre.send)
  const { id } = await make('/api/v1/projects', { name: 'schedules' })
  project = `proj_${id}`
  base = `/api/v1/projects/${project}`
  agent = (await make(`${base}/agents`, { name: 'echo', config: { model: 'builtin/echo' } })).id
  await eventually(async () => (await cadre.send('GET', `${base}/agents/${agent}`)).body.status === 'running')
})
after(async () => {
  await cadre?.stop()
  provider?.close()
})

const screen = (page: Page, name: string) => checkScreen(page, name, { isOnTablet: true })
const reached = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()

test('a schedule is created with a preview, run at once, paused, changed and deleted', inBrowser, async () => {
  // A pattern that is not finished is refused while it is typed.
  const page = await cadre.open(`/p/${project}/schedules`, { allowed: /schedules\/preview/ })
  const dialog = page.getByRole('dialog')
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  await page.getByText('Run agents on a schedule').waitFor()
  await screen(page, 'schedules-empty')
  await button('Create a schedule').click()
  await dialog.getByLabel('Name').fill('Morning report')
  await chooseAgent(page, 'echo')
  await dialog.getByLabel('Task input').fill('Summarize what happened since yesterday.')
  await dialog.getByLabel('Pattern').fill('61 7 * * *')
  await dialog.getByText('This is not a valid cron pattern.').waitFor()
  assert.equal(await dialog.getByText(/^Every day at/).count(), 0, 'a pattern that is not valid has no words')
  assert.equal(await button('Create schedule').getAttribute('title'), 'Fix the cron pattern')
  await choose(page, 'Runs', 'Every weekday')
  await pick(page, 'Time zone', 'America/New_York')
  await dialog.getByText('Every weekday at 07:30').waitFor()
  await dialog
    .getByText(/07:30 in New York/)
    .first()
    .waitFor()
  assert.equal(await dialog.getByRole('list', { name: 'Next runs' }).getByRole('listitem').count(), 5)
  await screen(page, 'schedule-new')
  await button('Create schedule').click()
  await page.getByText('Morning report is set').waitFor()
  await page.getByRole('link', { name: 'Morning report' }).click()
  await reached(page, 'Morning report')
  await page.getByText('It has not run yet.').waitFor()

  await button('Run now').click()
  const history = page.getByRole('list', { name: 'History, the newest last' })
  await history.getByRole('link', { name: /^completed/ }).waitFor()
  const [{ id }] = (await cadre.send('GET', `${base}/schedules`)).body.schedules
  for (let count = 0; count < 6; count++) await make(`${base}/schedules/${id}/trigger`, {})
  await eventually(async () => (await history.getByRole('link', { name: /^completed/ }).count()) === 7)
  await screen(page, 'schedule')
  await history.getByRole('link').first().click()
  await page.waitForURL(/\/tasks\/task_/)
  await page.getByRole('link', { name: 'Schedule', exact: true }).first().click()
  await reached(page, 'Morning report')
  await button('Pause').click()
  await button('Resume').waitFor()
  await page.getByText('None while it is paused.').waitFor()
  await button('Undo').click()
  await button('Pause').click()
  await page.getByText('None while it is paused.').waitFor()
  await button('Edit').click()
  await dialog.getByLabel('Name').fill('Evening report')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await reached(page, 'Evening report')
  await page.goto(`/p/${project}/schedules?status=paused`)
  await page.getByRole('link', { name: 'Evening report' }).waitFor()
  await screen(page, 'schedules')
  // By the keyboard alone: j comes to the first row, Enter opens it.
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await reached(page, 'Evening report')
  await button('Delete').click()
  await dialog.getByRole('textbox').fill('Evening report')
  await button('Delete schedule').click()
  await page.getByText('Run agents on a schedule').waitFor()
  checkPage(page)
  await page.context().close()
})

test('a thread is started, continued and deleted, and shows turns of other clients live', inBrowser, async () => {
  const page = await cadre.open(`/p/${project}/threads`)
  const dialog = page.getByRole('dialog')
  await page.getByText('Have a conversation with an agent').waitFor()
  await screen(page, 'threads-empty')
  await page.getByRole('button', { name: 'Start a thread' }).click()
  await chooseAgent(page, 'echo')
  await dialog.getByLabel('First message').fill('What are your opening hours?')
  await dialog.getByRole('button', { name: 'Send' }).click()
  await reached(page, 'What are your opening hours?')
  const said = page.getByRole('list', { name: 'Conversation' })
  await eventually(async () => (await said.getByText('What are your opening hours?').count()) === 2)
  const composer = page.getByLabel('Message to echo')
  await composer.fill('And on **Sunday**?')
  await page.keyboard.press('Control+Enter')
  await said.locator('strong').getByText('Sunday').waitFor()
  assert.equal(await composer.inputValue(), '')
  await page.getByText('idle', { exact: true }).waitFor()

  // A turn that another client made appears without a reload.
  const thread_id = page.url().split('/').at(-1)!
  const script = [{ tool_calls: [{ name: 'current_time', arguments: { time_zone: 'UTC' } }] }, { text: 'It is noon.' }]
  await make(`${base}/agents/${agent}/tasks?wait=20`, { input: 'From elsewhere.', thread_id })
  await said.getByText('From elsewhere.').first().waitFor()
  await screen(page, 'thread')

  const config = { model: 'builtin/script', system_prompt: JSON.stringify(script), tools: ['current_time'] }
  const clock = await make(`${base}/agents`, { name: 'clock', config })
  const other = await make(`${base}/threads`, { agent_id: clock.id })
  await make(`${base}/agents/${clock.id}/tasks?wait=20`, { input: 'What time is it?', thread_id: other.id })
  await page.goto(`/p/${project}/threads`)
  await page.getByRole('link', { name: 'What time is it?' }).waitFor()
  await screen(page, 'threads')
  await page.getByRole('link', { name: 'What time is it?' }).click()
  await page.getByText('Called current_time').click()
  await page.getByLabel('Copy the arguments of current_time').first().getByText('"time_zone": "UTC"').waitFor()
  await page.getByText('It is noon.').waitFor()
  await screen(page, 'thread-tools')
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await dialog.getByRole('button', { name: 'Delete thread' }).click()
  await reached(page, 'Threads')
  await page.getByRole('link', { name: 'What time is it?' }).waitFor({ state: 'detached' })
  checkPage(page)
  await page.context().close()
})

test('files are uploaded, downloaded, found by their name, and deleted', inBrowser, async () => {
  const page = await cadre.open(`/p/${project}/files`)
  await page.getByText('Give agents files to read').waitFor()
  await screen(page, 'files-empty')
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  )
  await page.getByLabel('Files to upload').setInputFiles([
    { name: 'photo.png', mimeType: 'image/png', buffer: png },
    { name: 'table.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b\n1,2\n') },
  ])
  await page.getByText('2 files are uploaded').waitFor()
  await page.getByRole('link', { name: 'table.csv' }).waitFor()
  await screen(page, 'files')
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: 'table.csv' }).click()
  assert.equal((await download).suggestedFilename(), 'table.csv')
  await page.getByLabel('Part of the name').fill('photo')
  await page.getByRole('link', { name: 'table.csv' }).waitFor({ state: 'detached' })
  assert.match(page.url(), /q=photo/)
  await page.getByRole('button', { name: 'Delete photo.png' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete file' }).click()
  await page.getByText('No matching files.').waitFor()
  checkPage(page)
  await page.context().close()
})

test('the page of model providers shows state, models, agents and the last failed task', inBrowser, async () => {
  const config = { model: 'local/large', max_retries: 0 }
  const broken = await make(`${base}/agents`, { name: 'broken', config })
  const task = await make(`${base}/agents/${broken.id}/tasks?wait=20`, { input: 'x' })
  assert.equal(task.status, 'failed', JSON.stringify(task))
  const page = await cadre.open('/settings/model-providers')
  await page.getByText('builtin/script').waitFor()
  const local = page.getByRole('region', { name: 'local' })
  await local.getByText('refused', { exact: true }).waitFor()
  await local.getByRole('link', { name: 'broken' }).waitFor()
  await screen(page, 'model-providers')
  await local.getByRole('link', { name: 'open the task' }).click()
  await page.waitForURL(new RegExp(task.id))
  checkPage(page)
  await page.context().close()
})

test('a viewer sees who may change schedules, threads and files, and a member may', inBrowser, async () => {
  const viewer = await cadre.open(`/p/${project}/schedules`, { role: 'viewer' })
  const why = /ask an owner or administrator/
  const refused = async (name: string) =>
    assert.match((await viewer.getByRole('button', { name, exact: true }).getAttribute('title')) ?? '', why, name)
  await viewer.getByText('Run agents on a schedule').waitFor()
  await refused('Create a schedule')
  await viewer.getByRole('link', { name: 'Threads' }).click()
  await viewer.getByRole('link', { name: 'What are your opening hours?' }).click()
  await reached(viewer, 'What are your opening hours?')
  await refused('Send')
  await refused('Delete')
  await screen(viewer, 'thread-viewer')
  await viewer.getByRole('link', { name: 'Files' }).click()
  await reached(viewer, 'Files')
  await refused('Upload')
  await viewer.getByRole('link', { name: 'Model providers' }).click()
  await viewer.getByText('builtin/script').waitFor()
  await refused('Add a provider')
  await screen(viewer, 'model-providers-viewer')
  checkPage(viewer)
  await viewer.context().close()

  const member = await cadre.open(`/p/${project}/threads?panel=new`, { role: 'member' })
  await chooseAgent(member, 'echo')
  await member.getByLabel('First message').fill('Hello from a member')
  await member.getByRole('dialog').getByRole('button', { name: 'Send' }).click()
  await reached(member, 'Hello from a member')
  checkPage(member)
  await member.context().close()
})
