import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, test } from 'node:test'
import type { Page, Request } from 'playwright-core'
import { newId } from '../../server/src/platform/ids.ts'
import { eventually } from '../../server/test/harness.ts'
import { startLocalServer } from '../../server/test/fakes/local-server.ts'
import { isLongRun } from '../../server/test/long-run.ts'
import { inBrowser } from './chromium.ts'
import { checkPage, checkScreen, chooseAgent, startConsoleProcess, type TestConsoleProcess } from './console.ts'

/** Messages of the browser while the service is down; no others are allowed then. */
const away = /Failed to load resource: (net::ERR_|the server responded with a status of 503)/

/** Number of log lines that one statement writes. */
const batch_lines = 10_000

let cadre: TestConsoleProcess
let project: string

before(async () => {
  if (inBrowser.skip) return
  cadre = await startConsoleProcess({ CADRE_EGRESS_ALLOW: 'loopback' })
  project = String((await cadre.send('POST', '/api/v1/projects', { body: { name: 'shop' } })).body.id)
})

after(() => cadre?.stop())

async function post(path: string, body: object): Promise<any> {
  const answer = await cadre.send('POST', path, { body })
  assert.ok(answer.status < 300, JSON.stringify(answer.body))
  return answer.body
}

test(
  'the page of a task shows each event once although the service is killed and started again',
  inBrowser,
  async (t) => {
    // A call that is answered when the test says so: the task is in the middle for as long as it takes.
    const calls: ServerResponse[] = []
    const { url } = await startLocalServer(t, (_request, response) => void calls.push(response))
    await post(`/api/v1/projects/${project}/tools`, {
      name: 'hold',
      description: 'Waits.',
      kind: 'http',
      http: { method: 'GET', url },
    })
    const rounds = {
      repeat: 10,
      steps: [{ text: 'On it.' }, { tool_calls: [{ name: 'current_time', arguments: {} }] }],
    }
    const worker = await post(`/api/v1/projects/${project}/agents`, {
      name: 'worker',
      config: {
        model: 'builtin/script',
        tools: ['current_time', 'hold'],
        system_prompt: JSON.stringify([
          rounds,
          { tool_calls: [{ name: 'hold', arguments: {} }] },
          rounds,
          { text: 'All done.' },
        ]),
      },
    })
    const { id } = await post(`/api/v1/projects/${project}/agents/${worker.id}/tasks`, { input: 'Count to twenty.' })
    const taskNow = async () => (await cadre.send('GET', `/api/v1/projects/${project}/tasks/${id}`)).body
    const page = await cadre.open(`/p/${project}/tasks/${id}?view=events`, { allowed: away })
    await page.locator('[data-connection="open"]').waitFor()
    await eventually(async () => calls.length === 1)
    const { last_sequence } = await taskNow()
    await page.locator(`[data-sequence="${last_sequence}"]`).waitFor()

    await cadre.service.end('SIGKILL')
    await page.locator('[data-connection="reconnecting"]').waitFor()
    await cadre.start()
    await page.locator('[data-connection="open"]').waitFor()
    // The call changes nothing outside, so it is made again.
    await eventually(async () => calls.length === 2)
    calls[1]!.end('Go on.')
    const ended = await eventually(async () => {
      const now = await taskNow()
      return now.status === 'completed' && now
    })
    await page.locator(`[data-sequence="${ended.last_sequence}"][data-type="task.completed"]`).waitFor()

    const kept: string[] = []
    for (let offset = 0; offset < ended.last_sequence; offset += 1000) {
      const { body } = await cadre.send(
        'GET',
        `/api/v1/projects/${project}/tasks/${id}/events?limit=1000&offset=${offset}`,
      )
      kept.push(...body.events.map(({ sequence, type }: any) => `${sequence} ${type}`))
    }
    assert.deepEqual(await everyRow(page, 'Events', kept.length), kept)

    // A page that is opened later retries failed reads.
    let failed = 0
    await page.route(/\/events\?.*offset=0/, async (route) => {
      if ((await page.getByRole('alert').count()) > 0) return route.fallback()
      failed++
      return route.abort()
    })
    await page.reload()
    await page.locator(`[data-sequence="${ended.last_sequence}"]`).waitFor()
    assert.deepEqual(await everyRow(page, 'Events', kept.length), kept)
    assert.ok(failed > 0)
    assert.equal(await page.getByRole('alert').count(), 0)
    checkPage(page)
    await page.context().close()
  },
)

/** Scrolls through a list of any length and returns its rows in order; fails if a row appears twice at a time. */
async function everyRow(page: Page, label: string, count: number): Promise<string[]> {
  const list = page.getByRole('region', { name: label })
  const seen = new Map<number, string>()
  // A list that follows its end stops for a user's key; a scroll of a program may look like rows that are being measured.
  await eventually(async () => {
    await list.press('Home')
    return (await list.locator('[data-sequence="1"]').count()) > 0
  })
  await eventually(async () => {
    const rows: [number, string][] = await list.evaluate((element) => {
      const found = [...element.querySelectorAll('[data-sequence]')].map((row): [number, string] => [
        Number(row.getAttribute('data-sequence')),
        `${row.getAttribute('data-sequence')} ${row.getAttribute('data-type')}`,
      ])
      // Scrolls by less than a screen after reading all visible rows.
      if (found.length === element.querySelectorAll('li').length) element.scrollBy(0, element.clientHeight / 2)
      return found
    })
    assert.equal(new Set(rows.map(([sequence]) => sequence)).size, rows.length, 'an event is shown twice')
    for (const [sequence, text] of rows) seen.set(sequence, text)
    return seen.size >= count
  })
  return [...seen].sort(([a], [b]) => a - b).map(([, text]) => text)
}

test(
  'a hidden tab holds no stream and catches up when it is shown, and a visible tab has one stream',
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
  'the log of a project has the lines of all agents, shows the lines around a match, copies lines, and continues after a restart of the service',
  inBrowser,
  async () => {
    // The agents are idle, so that their logs contain only the lines written here.
    const { id } = (await cadre.send('POST', '/api/v1/projects', { body: { name: 'logs' } })).body
    const [north, south] = ['north', 'south'].map((name) => ({ name, id: newId('agent') }))
    for (const agent of [north!, south!])
      await cadre.sql`
        insert into agent (id, project_id, name, status, config, metadata, created_by, token_subject)
        values (${agent.id}, ${id}, ${agent.name}, 'stopped', '{"model": "builtin/echo", "tools": []}', '{}', 'user_x', 'user_x')`
    const now = new Date().toISOString()
    // Errors are at the quarters. A long run has more lines than are copied at once.
    const quarter = isLongRun ? 50_000 : 2000
    const all = 4 * quarter + 5
    const write = (agent_id: string, from: number, to: number) => cadre.sql`
      insert into agent_log (id, agent_id, timestamp, level, message)
      select 'log_' || lpad(n::text, 9, '0'), ${agent_id}, ${now}::timestamptz - make_interval(secs => (${all} + 10000 - n) * 0.01),
        case when n % ${quarter}::int = 0 then 'error' else 'info' end, 'line ' || n
      from generate_series(${from}::int, ${to}::int, 2) n`
    // Few enough at a time for the timeout of a statement.
    for (let from = 1; from <= all; from += batch_lines)
      for (const [at, agent] of [north!, south!].entries())
        await write(agent.id, from + at, Math.min(all, from + batch_lines - 1))
    await cadre.sql`analyze agent_log`

    const page = await cadre.open(`/p/${id}/logs`, { allowed: away })
    const lines = page.getByRole('log')
    await page.getByText(`Live · ${count(all)} lines`).waitFor()
    await lines.getByRole('button', { name: new RegExp(`north line ${all}$`) }).waitFor()
    await lines.getByRole('button', { name: new RegExp(`south line ${all - 1}$`) }).waitFor()
    // Where there are more than are copied at once, it says which.
    const which = isLongRun ? `the newest 200,000 of ${count(all)} lines` : `all ${count(all)} lines`
    await page.getByRole('button', { name: `Copy ${which}` }).waitFor()
    await checkScreen(page, 'logs-project')

    await page.getByLabel('Text in the message').fill(`LINE ${3 * quarter}`)
    await page.getByText('Live · 1 line', { exact: true }).waitFor()
    await lines.getByRole('button', { name: new RegExp(`south line ${3 * quarter}$`) }).click()
    // What surrounds a hit is read in its place, also what does not match.
    const around = lines.getByRole('list', { name: 'Lines around it' }).getByRole('listitem')
    await around.getByText(`line ${3 * quarter + 5}`, { exact: true }).waitFor()
    assert.deepEqual(
      (await around.allInnerTexts()).map((text) => Number(/line (\d+)$/.exec(text)?.[1]) - 3 * quarter),
      [-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5],
    )
    await checkScreen(page, 'logs-around')
    await lines.getByRole('link', { name: 'Show in all lines' }).click()
    await page.waitForURL(/at=/)
    for (const n of [-1, 0, 1].map((by) => 3 * quarter + by))
      await lines.getByText(`line ${n}`, { exact: true }).waitFor()

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
      [1, 2, 3, 4].map((n) => `line ${n * quarter}`),
    )
    for (const n of [3 * quarter, quarter])
      await lines.getByRole('button', { name: new RegExp(`line ${n}$`) }).click({ modifiers: ['Shift'] })
    await checkScreen(page, 'logs-chosen')
    await page.getByRole('button', { name: 'Copy 3 selected' }).click()
    await page.getByText('Copied 3 lines').waitFor()
    const chosen: string = await page.evaluate('navigator.clipboard.readText()')
    assert.equal(chosen, copied.split('\n').slice(0, 3).join('\n') + '\n')

    await page.goto(`/p/${id}/logs`)
    await chooseAgent(page, 'south')
    const ofSouth = (all - 1) / 2
    await page.getByText(`Live · ${count(ofSouth)} lines`).waitFor()
    await cadre.service.end('SIGKILL')
    await page.getByRole('alert').waitFor()
    await cadre.start()
    await write(south!.id, all + 1, all + 1)
    await lines.getByText(`line ${all + 1}`, { exact: true }).waitFor()
    await page.getByText(`Live · ${count(ofSouth + 1)} lines`).waitFor()
    await page.getByRole('alert').waitFor({ state: 'detached' })
    checkPage(page)
    await page.context().close()
  },
)

test(
  'a page that is opened while the service is down loads when the service is back, and a note names a changed version',
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
    // Another version is served: the note says so, and all files can be loaded again.
    await page.route('**/api/v1/status', async (route) => {
      const response = await route.fetch().catch(() => undefined)
      if (!response) return route.abort()
      await route.fulfill({ response, json: { ...(await response.json()), version: '99.0.0' } })
    })
    await cadre.start()
    await page.getByText(/^The service was updated from .* to 99\.0\.0\./).waitFor()
    await page.getByRole('alert').waitFor({ state: 'detached' })
    await checkScreen(page, 'service-updated')
    await page.context().close()
  },
)

test('a page without a connection says so once for all that it reads, and that it is not live', inBrowser, async () => {
  await post(`/api/v1/projects/${project}/agents`, { name: 'listener', config: { model: 'builtin/echo' } })
  const page = await cadre.open(`/p/${project}`, { allowed: away })
  await page.getByText('Service operational').waitFor()
  await page.locator('[data-connection="open"]').waitFor()
  await page.context().setOffline(true)
  // The stream before is still open: nothing has told that it is dead.
  await page.locator('[data-connection="reconnecting"]').waitFor()
  await page.keyboard.press('r')
  await page.getByText('Service operational').waitFor({ state: 'detached' })
  const notice = page.getByRole('alert')
  assert.match((await notice.textContent()) ?? '', /cannot be reached/)
  assert.equal(await page.locator('main').getByText('cannot be reached').count(), 0)
  await page.context().setOffline(false)
  await page.locator('[data-connection="open"]').waitFor()
  await notice.waitFor({ state: 'detached' })
  await page.getByText('Service operational').waitFor()
  checkPage(page)
  await page.context().close()
})

const count = (lines: number): string => lines.toLocaleString('en')

/** Makes a page visible or hidden like a tab: a headless browser shows all of its pages. */
async function show(page: Page, isShown: boolean): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, value: ${!isShown} })
    Object.defineProperty(document, 'visibilityState', { configurable: true, value: '${isShown ? 'visible' : 'hidden'}' })
    document.dispatchEvent(new Event('visibilitychange'))`)
}
