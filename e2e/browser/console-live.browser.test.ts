import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Page, Request } from 'playwright-core'
import { newId } from '../../server/src/platform/ids.ts'
import { eventually } from '../../server/test/harness.ts'
import { inBrowser } from './chromium.ts'
import { checkPage, checkScreen, chooseAgent, startConsole, type TestConsole } from './console.ts'

/** What the browser says when the service is away; nothing else is allowed then. */
const away = /Failed to load resource: (net::ERR_|the server responded with a status of 503)/

let cadre: TestConsole
let project: string

before(async () => {
  if (inBrowser.skip) return
  cadre = await startConsole()
  project = String((await cadre.send('POST', '/api/v1/projects', { body: { name: 'shop' } })).body.id)
})

after(() => cadre?.stop())

test(
  'tabs that are out of sight hold no connection, and catch up later; a tab has one stream at most',
  inBrowser,
  async () => {
    const agent = await cadre.send('POST', `/api/v1/projects/${project}/agents`, {
      body: { name: 'slow', config: { model: 'builtin/script', system_prompt: '[{"delay_ms": 600000}]' } },
    })
    const give = async (input: string): Promise<string> =>
      (await cadre.send('POST', `/api/v1/projects/${project}/agents/${agent.body.id}/tasks`, { body: { input } })).body
        .id
    const first = await give('The first task')

    // A browser opens six connections to a host, over all its tabs.
    const tab = await cadre.open(`/p/${project}/tasks`)
    const context = tab.context()
    const streams = new Map<Page, number>()
    const countStreams = (page: Page): void => {
      const isStream = (request: Request): boolean => request.url().endsWith('/events/stream')
      const add = (request: Request, by: number): void => {
        if (isStream(request)) streams.set(page, (streams.get(page) ?? 0) + by)
      }
      page.on('request', (request) => add(request, 1))
      page.on('requestfinished', (request) => add(request, -1))
      page.on('requestfailed', (request) => add(request, -1))
    }
    countStreams(tab)
    await tab.reload()
    const others: Page[] = []
    for (let i = 0; i < 7; i++) {
      const page = await context.newPage()
      countStreams(page)
      others.push(page)
      await page.goto(i === 0 ? `/p/${project}/tasks/${first}` : `/p/${project}/tasks`)
      await page.getByText('The first task').first().waitFor()
      await eventually(async () => streams.get(page) === 1)
      await show(page, false)
      await eventually(async () => streams.get(page) === 0)
    }
    assert.equal(streams.get(tab), 1)

    await give('The second task')
    await tab.getByText('The second task').waitFor()
    const back = others[3]!
    assert.equal(await back.getByText('The second task').count(), 0)
    await show(back, true)
    await back.getByText('The second task').waitFor()

    const task = others[0]!
    await show(task, true)
    await eventually(async () => streams.get(task) === 1)
    await cadre.send('POST', `/api/v1/projects/${project}/tasks/${first}/cancel`, { body: {} })
    await task.getByText('The task is canceled.', { exact: true }).first().waitFor()
    // The task's own stream has ended, and the project's is there again.
    await eventually(async () => streams.get(task) === 1)
    await context.close()
  },
)

test(
  'the logs of all agents are read as one; lines stand among others, are copied, and go on after the service was away',
  inBrowser,
  async () => {
    // Idle agents: their logs hold only what is written here.
    const { id } = (await cadre.send('POST', '/api/v1/projects', { body: { name: 'logs' } })).body
    const [north, south] = ['north', 'south'].map((name) => ({ name, id: newId('agent') }))
    for (const agent of [north!, south!])
      await cadre.sql`
        insert into agent (id, project_id, name, status, config, metadata, created_by, token_subject)
        values (${agent.id}, ${id}, ${agent.name}, 'stopped', '{"model": "builtin/echo", "tools": []}', '{}', 'user_x', 'user_x')`
    const now = new Date().toISOString()
    const write = (agent_id: string, from: number, to: number, step: number) => cadre.sql`
      insert into agent_log (id, agent_id, timestamp, level, message)
      select 'log_' || lpad(n::text, 9, '0'), ${agent_id}, ${now}::timestamptz - make_interval(secs => (210000 - n) * 0.01),
        case when n % 50000 = 0 then 'error' else 'info' end, 'line ' || n
      from generate_series(${from}::int, ${to}::int, ${step}::int) n`
    await write(north!.id, 1, 200_005, 2)
    await write(south!.id, 2, 200_004, 2)

    const page = await cadre.open(`/p/${id}/logs`, { allowed: away })
    const lines = page.getByRole('log')
    await page.getByText('Live · 200,005 lines').waitFor()
    await lines.getByRole('button', { name: /north line 200005$/ }).waitFor()
    await lines.getByRole('button', { name: /south line 200004$/ }).waitFor()
    // More than is copied at once: it says which.
    await page.getByRole('button', { name: 'Copy the newest 200,000 of 200,005 lines' }).waitFor()
    await checkScreen(page, 'logs-project')

    await page.getByLabel('Text in the message').fill('LINE 150000')
    await page.getByText('Live · 1 line', { exact: true }).waitFor()
    await lines.getByRole('button', { name: /south line 150000$/ }).click()
    await lines.getByRole('link', { name: 'Lines around it' }).click()
    await page.waitForURL(/at=/)
    for (const n of [149_999, 150_000, 150_001]) await lines.getByText(`line ${n}`, { exact: true }).waitFor()

    await page.goto(`/p/${id}/logs?level=error`)
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'Copy all 4 lines' }).click()
    await page.getByText('Copied 4 lines').waitFor()
    const copied: string = await page.evaluate('navigator.clipboard.readText()')
    assert.deepEqual(
      copied
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).message),
      [50_000, 100_000, 150_000, 200_000].map((n) => `line ${n}`),
    )
    for (const n of [150_000, 50_000])
      await lines.getByRole('button', { name: new RegExp(`line ${n}$`) }).click({ modifiers: ['Shift'] })
    await checkScreen(page, 'logs-chosen')
    await page.getByRole('button', { name: 'Copy 3 chosen' }).click()
    await page.getByText('Copied 3 lines').waitFor()
    const chosen: string = await page.evaluate('navigator.clipboard.readText()')
    assert.equal(chosen, copied.split('\n').slice(0, 3).join('\n') + '\n')

    await page.goto(`/p/${id}/logs`)
    await chooseAgent(page, 'south')
    await page.getByText('Live · 100,002 lines').waitFor()
    await cadre.service.end('SIGKILL')
    await page.getByRole('alert').waitFor()
    await cadre.start()
    await write(south!.id, 200_006, 200_006, 1)
    await lines.getByText('line 200006', { exact: true }).waitFor()
    await page.getByText('Live · 100,003 lines').waitFor()
    await page.getByRole('alert').waitFor({ state: 'detached' })
    checkPage(page)
    await page.context().close()
  },
)

test(
  'a page that is opened while the service is down loads when it is back, and says when it is another version',
  inBrowser,
  async () => {
    // The browser reports missing files of a page too.
    const page = await cadre.open('/settings/keys', { allowed: new RegExp(`${away.source}|UnloadedError`) })
    await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor()
    await cadre.service.end('SIGKILL')
    // One whose files are here and whose data is not, then one of which nothing is here.
    await page.keyboard.press('r')
    await page.getByRole('alert').getByText('cannot be reached').first().waitFor()
    await page.getByRole('link', { name: 'Audit log' }).click()
    await page.getByRole('heading', { name: 'This page could not be loaded' }).waitFor()
    await cadre.start()
    await page.getByRole('heading', { name: 'Audit log', level: 1 }).waitFor()

    await page.getByRole('link', { name: 'Sessions' }).click()
    await page.getByText('this one').waitFor()
    await cadre.service.end('SIGKILL')
    await page.keyboard.press('r')
    await page.getByRole('alert').first().waitFor()
    // Another version comes back: the note says so, and nothing that could not be had is missing any more.
    await page.route('**/api/v1/status', async (route) => {
      const response = await route.fetch().catch(() => undefined)
      if (!response) return route.abort()
      await route.fulfill({ response, json: { ...(await response.json()), version: '99.0.0' } })
    })
    await cadre.start()
    await page.getByRole('alert').waitFor({ state: 'detached' })
    await checkScreen(page, 'service-updated')
    await page.context().close()
  },
)

/** Has a page come into sight, or go out of it, as a tab does: a browser without a window shows all of its pages. */
async function show(page: Page, isShown: boolean): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, value: ${!isShown} })
    Object.defineProperty(document, 'visibilityState', { configurable: true, value: '${isShown ? 'visible' : 'hidden'}' })
    document.dispatchEvent(new Event('visibilitychange'))`)
}
