import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Page, Request } from 'playwright-core'
import { eventually } from '../server/test/harness.ts'
import { inBrowser } from './chromium.ts'
import { startConsole, type TestConsole } from './console.ts'

let cadre: TestConsole
let project: string

before(async () => {
  if (inBrowser.skip) return
  cadre = await startConsole()
  project = String((await cadre.send('POST', '/api/v1/projects', { body: { name: 'shop' } })).body.id)
})

after(() => cadre?.stop())

test(
  'tabs that are out of sight hold no connection, and are told what they missed; a tab has one stream at most',
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

/** Has a page come into sight, or go out of it, as a tab does: a browser without a window shows all of its pages. */
async function show(page: Page, isShown: boolean): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, value: ${!isShown} })
    Object.defineProperty(document, 'visibilityState', { configurable: true, value: '${isShown ? 'visible' : 'hidden'}' })
    document.dispatchEvent(new Event('visibilitychange'))`)
}
