import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { maker } from '../../server/test/contract/full-installation.ts'
import { inBrowser } from './chromium.ts'
import { checkPage, checkScreen, startConsole, startConsoleProcess, type TestConsole } from './console.ts'

/** What the browser says of requests without a session, whose stream is ended, and of a service that is down. */
const refused = /Failed to load resource: (net::ERR_|the server responded with a status of 401)/
const away = /Failed to load resource: (net::ERR_|the server responded with a status of 503)/

const typed = 'Typed before the session ended'

const dialogOf = (page: Page): Locator => page.getByRole('dialog', { name: 'Your session has ended' })

/** Every form, and a field of it. Paths with two slashes are not of a project. */
const forms: { path: string; field: string; within?: 'dialog' }[] = [
  { path: '/agents/new', field: 'Name' },
  { path: '/agents/{agent}/edit', field: 'Description' },
  { path: '/tools/new', field: 'Description' },
  { path: '/tools/{tool}/edit', field: 'Description' },
  { path: '/credentials?panel=new', field: 'Secret', within: 'dialog' },
  { path: '/schedules?panel=new', field: 'Name', within: 'dialog' },
  { path: '/threads?panel=new', field: 'First message', within: 'dialog' },
  { path: '/threads/{thread}', field: 'Message to echo' },
  { path: '/triggers?panel=new', field: 'Name', within: 'dialog' },
  { path: '/usage?tab=budgets&panel=budget', field: 'US dollars', within: 'dialog' },
  { path: '/playground', field: 'Message' },
  { path: '//projects?panel=new', field: 'Name', within: 'dialog' },
  { path: '//webhooks?panel=new', field: 'Address', within: 'dialog' },
  { path: '//settings/keys?panel=new', field: 'Name', within: 'dialog' },
  { path: '//settings/apps?panel=new', field: 'Name', within: 'dialog' },
  { path: '//settings/members?panel=invite', field: 'E-mail address', within: 'dialog' },
  { path: '//settings/preferences', field: 'Name' },
]

/** Valid text for fields that do not accept every text. */
const texts: Record<string, string> = { 'US dollars': '12', 'E-mail address': 'kim@example.com' }

/** Pages of a project that show whether they are live. */
const livePages = [
  '',
  '/agents',
  '/agents/{agent}',
  '/tasks',
  '/tools',
  '/schedules',
  '/threads',
  '/approvals',
  '/usage',
]

/** A project with one of what has a form to edit it. */
async function fill(cadre: TestConsole): Promise<{ at: (path: string) => string }> {
  const make = maker(cadre.send)
  const project = `proj_${(await make('/api/v1/projects', { name: 'forms' })).id}`
  const base = `/api/v1/projects/${project}`
  const { id: agent } = await make(`${base}/agents`, { name: 'echo', config: { model: 'builtin/echo' } })
  const { id: tool } = await make(`${base}/tools`, { name: 'refund', description: 'Pays back.', kind: 'client' })
  const { id: thread } = await make(`${base}/threads`, { agent_id: agent })
  const ids: Record<string, string> = { agent, tool, thread }
  return {
    at: (path) =>
      path.startsWith('//')
        ? path.slice(1)
        : `/p/${project}${path.replace(/\{(\w+)\}/, (_, name: string) => ids[name] ?? '')}`,
  }
}

let cadre: TestConsole
before(async () => {
  if (!inBrowser.skip) cadre = await startConsole()
})
after(() => cadre?.stop())

test('a form keeps its text when the session ends, on every page with a form', inBrowser, async () => {
  const { at } = await fill(cadre)
  const page = await cadre.open('/projects', { allowed: refused, hasClock: true })
  // Leaving a form asks whether to discard the input.
  page.on('dialog', (dialog) => void dialog.accept())
  const end = () => cadre.sql`update session set expires_at = now() - interval '1 minute'`
  const renew = () => cadre.sql`update session set expires_at = now() + interval '30 days'`
  for (const { path, field, within } of forms) {
    await page.goto(at(path))
    const input = (within === undefined ? page : page.getByRole(within)).getByLabel(field, { exact: true })
    const text = texts[field] ?? typed
    await input.fill(text)
    await end()
    // A person comes back after a while: what is shown is read again.
    await page.clock.fastForward(61_000)
    await page.evaluate('document.dispatchEvent(new Event("visibilitychange", { bubbles: true }))')
    await dialogOf(page).waitFor()
    if (path === '/agents/new') await checkScreen(page, 'session-ended')
    await renew()
    await page.evaluate('window.dispatchEvent(new Event("focus"))')
    await dialogOf(page).waitFor({ state: 'detached' })
    assert.equal(await input.inputValue(), text, path)
  }
  checkPage(page)
  await page.context().close()
})

test('a person signs in again in a separate window and then sends the form', inBrowser, async () => {
  const live = await startConsoleProcess()
  try {
    const { at } = await fill(live)
    const page = await live.open(at('/agents/new'), { allowed: refused })
    await page.getByLabel('Name', { exact: true }).fill('clerk')
    await live.sql`delete from session`
    // The page may notice before the form is sent, and then its dialog is over the button.
    await page.evaluate(`document.querySelector('main form').requestSubmit()`)
    const opened = page.context().waitForEvent('page')
    await dialogOf(page).getByRole('button', { name: 'Sign in' }).click()
    const window = await opened
    const closed = window.waitForEvent('close')
    await window.getByLabel('E-mail address').fill('owner@example.com')
    await window.getByLabel('Password').fill('correct horse battery staple')
    await window.getByRole('button', { name: 'Sign in' }).click()
    await closed
    await dialogOf(page).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Create agent', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'clerk' }).waitFor()
    checkPage(page)
    await page.context().close()
  } finally {
    await live.stop()
  }
})

test('every live page reconnects after the service was killed and started again', inBrowser, async () => {
  const live = await startConsoleProcess()
  try {
    const { at } = await fill(live)
    // Each in a context: the tabs of one share six connections to a host.
    const pages: Page[] = []
    for (const path of livePages) pages.push(await live.open(at(path), { allowed: away }))
    for (const page of pages) await page.getByRole('heading', { level: 1 }).first().waitFor()
    await live.service.end('SIGKILL')
    await Promise.all(pages.map((page) => page.getByText('Reconnecting').first().waitFor()))
    await live.start()
    for (const [index, page] of pages.entries()) {
      await page.getByText('Live', { exact: true }).first().waitFor()
      await page.getByText('cannot be reached').first().waitFor({ state: 'detached' })
      assert.equal(new URL(page.url()).pathname, new URL(at(livePages[index]!), live.url).pathname)
    }
    // What is made now comes to a page that was open all the time.
    const agents = pages[livePages.indexOf('/agents')]!
    const [, project] = /\/p\/proj_(\w+)/.exec(agents.url())!
    await maker(live.send)(`/api/v1/projects/${project}/agents`, {
      name: 'newcomer',
      config: { model: 'builtin/echo' },
    })
    await agents.getByRole('link', { name: 'newcomer' }).waitFor()
    for (const page of pages) {
      checkPage(page)
      await page.context().close()
    }
  } finally {
    await live.stop()
  }
})
