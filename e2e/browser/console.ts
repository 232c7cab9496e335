import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { openDatabase, type Sql } from '../../server/src/platform/postgres/database.ts'
import type { Role } from '#contract/core/scopes.ts'
import { makePerson, makeSession, ownerOf } from '../../server/test/actors.ts'
import { localUrl, makeTestDatabase, sender, startTestService, type Send } from '../../server/test/harness.ts'
import { isFullRun } from '../../server/test/long-run.ts'
import { buildConsoleIfStale } from '../../tools/console-build.mjs'
import { type BrowserOptions, cutTables, isWider, useBrowser, violationsOf } from './chromium.ts'
import { databaseEnvironment, startProcess, type RunningService } from '../process.ts'

const owner = {
  CADRE_ADMIN_EMAIL: 'owner@example.com',
  CADRE_ADMIN_PASSWORD: 'correct horse battery staple',
  CADRE_ADMIN_API_KEY: `cadre_${'0123456789abcdef'.repeat(2)}`,
}
const desk = { width: 1440, height: 900 }
const tablet = { width: 768, height: 1024 }
const telephone = { width: 390, height: 844 }
/** The first load builds caches and compiles scripts, on a machine that others use too. */
const patience_ms = 60_000

/** The console of a service, in a browser. */
export interface TestConsole {
  /** The origin that pages come from. */
  url: string
  send: Send
  /** An API key of the owner. */
  key: string
  sql: Sql
  browser: Browser
  /** A page of a signed-in user, at `path`; see `watch` for what it must not do. */
  open(path: string, options?: OpenOptions): Promise<Page>
  stop(): Promise<void>
}

/** The console of a service that runs as a separate process, which a test may kill. */
export interface TestConsoleProcess extends TestConsole {
  /** The service now; `start` puts a new one here. */
  service: RunningService
  /** Starts the service again, on the same port and database, after it was ended. */
  start(): Promise<void>
}

export interface OpenOptions {
  /** A telephone's screen with touch, or a desk's; a desk's where nothing is said. */
  screen?: 'telephone' | 'desk'
  /** Errors that the test brings about itself, such as those of a service that was killed. */
  allowed?: RegExp
  /** Whether the test moves the page's clock forward. The clock also runs. */
  hasClock?: boolean
  /** Who looks, where that is not the owner: a new member of the organization with this role. */
  role?: Role
}

/** Starts a service in this process, on a new database; every error that its pages log fails `checkPage`. */
export async function startConsole(env: Record<string, string> = {}, options?: BrowserOptions): Promise<TestConsole> {
  assert.ok(await buildConsoleIfStale(), 'the console is built')
  const [service, { browser, release }] = await Promise.all([startTestService(env), useBrowser(options)])
  const url = localUrl(service)
  const { cookie } = await makeSession(service, ownerOf(service))
  const [name = '', value = ''] = cookie.split('=')
  return {
    url,
    browser,
    sql: service.sql,
    send: sender(url, service.owner.api_key),
    key: service.owner.api_key,
    async open(path, options = {}) {
      const page = await openWatched(browser, url, options)
      const { role } = options
      if (role === undefined) await page.context().addCookies([{ name, value, url }])
      else {
        const person = await makePerson(service, role, service.owner.org_id)
        const [own = '', secret = ''] = (await makeSession(service, person)).cookie.split('=')
        await page.context().addCookies([{ name: own, value: secret, url }])
      }
      await page.goto(path)
      return page
    },
    async stop() {
      release()
      await service.stop()
    },
  }
}

/** Starts a service as users do, as a process on a new database. */
export async function startConsoleProcess(env: Record<string, string> = {}): Promise<TestConsoleProcess> {
  assert.ok(await buildConsoleIfStale(), 'the console is built')
  const database = await makeTestDatabase()
  const port = await freePort()
  const settings = {
    ...databaseEnvironment(database.connection),
    ...owner,
    PORT: String(port),
    CADRE_RATE_LIMITS_SCALE: '10000',
    ...env,
  }
  const opened = openDatabase({ connection: database.connection, connectionsMax: 2 })
  const url = `http://127.0.0.1:${port}`
  const [service, { browser, release }] = await Promise.all([startProcess(settings), useBrowser()])
  let session: Awaited<ReturnType<BrowserContext['storageState']>> | undefined

  const test: TestConsoleProcess = {
    url,
    browser,
    sql: opened.sql,
    send: sender(url, owner.CADRE_ADMIN_API_KEY),
    key: owner.CADRE_ADMIN_API_KEY,
    service,
    async start() {
      test.service = await startProcess(settings)
    },
    async open(path, options = {}) {
      const page = await openWatched(browser, url, options, session)
      if (!session) {
        await signIn(page)
        session = await page.context().storageState()
      }
      await page.goto(path)
      return page
    },
    async stop() {
      release()
      await test.service.end()
      await opened.close()
      await database.drop()
    },
  }
  return test
}

/** An empty page in a new context, which is watched. */
async function openWatched(
  browser: Browser,
  url: string,
  { screen = 'desk', allowed, hasClock = false }: OpenOptions,
  storageState?: Awaited<ReturnType<BrowserContext['storageState']>>,
): Promise<Page> {
  const context = await browser.newContext({
    viewport: screen === 'desk' ? desk : telephone,
    hasTouch: screen === 'telephone',
    baseURL: url,
    reducedMotion: 'reduce',
    ...(storageState ? { storageState } : {}),
  })
  context.setDefaultTimeout(patience_ms)
  const page = await context.newPage()
  if (hasClock) await page.clock.install()
  watch(page, url, allowed)
  return page
}

/** Signs in as the first owner, by the sign-in page. */
export async function signIn(page: Page): Promise<void> {
  await page.goto('/login')
  await fillSignIn(page)
}

/** Does so where that page is, or will be. */
export async function fillSignIn(page: Page): Promise<void> {
  await page.getByLabel('E-mail address').fill(owner.CADRE_ADMIN_EMAIL)
  await page.getByLabel('Password').fill(owner.CADRE_ADMIN_PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL((url) => !url.pathname.endsWith('/login'))
}

const faultsOfPages = new WeakMap<Page, string[]>()

/** Notes what a page must never do: errors, breaches of its policy, requests to other hosts. */
function watch(page: Page, origin: string, allowed: RegExp = /^$/): void {
  const faults: string[] = []
  faultsOfPages.set(page, faults)
  const note = (fault: string): void => {
    if (!allowed.test(fault)) faults.push(fault)
  }
  // The browser reports a violated policy on its console as well.
  page.on('console', (message) => {
    if (message.type() === 'error') note(`console: ${message.text()} (${message.location().url})`)
  })
  page.on('pageerror', (error) => note(`thrown: ${error.stack ?? error.message}`))
  page.on('request', (request) => {
    const { protocol, origin: theirs } = new URL(request.url())
    if (protocol.startsWith('http') && theirs !== origin) faults.push(`foreign host: ${request.url()}`)
  })
}

/** Fails where the page has done what it must not, since it was opened. */
export function checkPage(page: Page): void {
  assert.deepEqual(faultsOfPages.get(page), [])
}

/**
 * The screen as it stands: no serious fault that axe can see, nothing wider than its window, no error. On a telephone and a desk, one of
 * them light and the other dark, depending on the name, it is not wider than its window, and axe looks at one of the two. With
 * `CADRE_TEST_FULL=1` axe looks at each of them light and dark, and with `isOnTablet` at a tablet too. On a tablet no table is cut off. With
 * `CADRE_SCREENSHOTS` pictures of all go to that folder, to be looked at.
 */
export async function checkScreen(page: Page, name: string, { isOnTablet = false } = {}): Promise<void> {
  const folder = process.env.CADRE_SCREENSHOTS
  const before = page.viewportSize()
  const found: string[] = []
  for (const { size, colorScheme, hasAxe } of isFullRun || folder
    ? [...looks, ...(isOnTablet ? [tabletLook] : [])]
    : twoLooks(name)) {
    const now = page.viewportSize()
    if (now?.width !== size.width || now.height !== size.height) await page.setViewportSize(size)
    await page.emulateMedia({ colorScheme })
    // Two frames: the first lays out, and what is measured in it is drawn in the second. Then what moves has come to rest.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    await page.waitForFunction(
      '!document.getAnimations().some(({ playState, effect }) => playState === "running" && effect.getComputedTiming().endTime !== Infinity)',
    )
    const picture = `${name}-${size.width}-${colorScheme}`
    if (folder) {
      await mkdir(folder, { recursive: true })
      await page.screenshot({ path: join(folder, `${picture}.png`) })
    }
    if (hasAxe) for (const fault of await seriousFaults(page)) found.push(`${picture}: ${fault}`)
    if (await isWider(page)) found.push(`${picture}: wider than its window`)
  }
  await page.setViewportSize(tablet)
  if (await isWider(page)) found.push(`${name} is wider than a tablet`)
  for (const table of await cutTables(page)) found.push(`the table ${table} of ${name} is cut off on a tablet`)
  if (before) await page.setViewportSize(before)
  await page.emulateMedia({ colorScheme: null })
  assert.deepEqual(found, [])
  checkPage(page)
}

const looks = [desk, telephone].flatMap((size) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ size, colorScheme, hasAxe: true })),
)

const tabletLook = { size: tablet, colorScheme: 'light' as const, hasAxe: true }

/** A desk's look and a telephone's, one of them light and the other dark. Axe takes most of the time of a look, so it has one of them. */
function twoLooks(name: string): typeof looks {
  const sum = [...name].reduce((sum, letter) => sum + letter.charCodeAt(0), 0)
  const isDeskDark = Number(sum % 2 === 1)
  const isDeskFirst = sum % 4 < 2
  return [
    { ...looks[isDeskDark]!, hasAxe: isDeskFirst },
    { ...looks[3 - isDeskDark]!, hasAxe: !isDeskFirst },
  ]
}

async function seriousFaults(page: Page): Promise<string[]> {
  return (await violationsOf(page))
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(' | ')}`,
    )
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Chooses an agent where one is chosen, found by the service by its name. */
export async function chooseAgent(page: Page, name: string, label = 'Agent'): Promise<void> {
  await pick(page, label, name)
}

/** Chooses one of many, found by its name. */
export async function pick(page: Page, label: string, name: string): Promise<void> {
  await page.getByRole('combobox', { name: `${label}: ` }).click()
  await page.getByLabel(`${label}, by a part of its name`).fill(name)
  await page.getByRole('option', { name, exact: true }).click()
  await page.getByRole('combobox', { name: `${label}: ${name}` }).waitFor()
}

/** Chooses in a list that `label` names, by what the choice says. */
export async function choose(page: Page, label: string | RegExp, choice: string | RegExp): Promise<void> {
  await page.getByRole('combobox', { name: label, ...(typeof label === 'string' ? { exact: true } : {}) }).click()
  await page.getByRole('option', { name: choice, ...(typeof choice === 'string' ? { exact: true } : {}) }).click()
  await page.getByRole('listbox').waitFor({ state: 'detached' })
}
