import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import axe from 'axe-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { openDatabase, type Sql } from '../../server/src/platform/postgres/database.ts'
import { makeTestDatabase, sender, type Send } from '../../server/test/harness.ts'
import { buildConsoleIfStale } from '../../tools/console-build.mjs'
import { launchBrowser } from './chromium.ts'
import { databaseEnvironment, startProcess, type RunningService } from '../process.ts'

const owner = {
  CADRE_ADMIN_EMAIL: 'owner@example.com',
  CADRE_ADMIN_PASSWORD: 'correct horse battery staple',
  CADRE_ADMIN_API_KEY: `cadre_${'0123456789abcdef'.repeat(2)}`,
}
const desk = { width: 1440, height: 900 }
const telephone = { width: 390, height: 844 }
/** The first load builds caches and compiles scripts, on a machine that others use too. */
const patience_ms = 60_000

/** The console of a service that runs as a process, in a browser. */
export interface TestConsole {
  /** Its origin, which stays over restarts. */
  url: string
  send: Send
  /** An API key of the owner. */
  key: string
  sql: Sql
  browser: Browser
  /** The service now; `start` puts a new one here. */
  service: RunningService
  /** Starts the service again, on the same port and database, after it was ended. */
  start(): Promise<void>
  /** A page of a signed-in user, at `path`; see `watch` for what it must not do. */
  open(path: string, options?: OpenOptions): Promise<Page>
  stop(): Promise<void>
}

export interface OpenOptions {
  /** A telephone's screen with touch, or a desk's; a desk's where nothing is said. */
  screen?: 'telephone' | 'desk'
  /** Errors that the test brings about itself, such as those of a service that was killed. */
  allowed?: RegExp
}

/** Starts a service as users do, on a new database, and a browser; every error that it logs fails `checkPage`. */
export async function startConsole(env: Record<string, string> = {}): Promise<TestConsole> {
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
  const browser = await launchBrowser()
  const url = `http://127.0.0.1:${port}`
  let session: Awaited<ReturnType<BrowserContext['storageState']>> | undefined

  const test: TestConsole = {
    url,
    browser,
    sql: opened.sql,
    send: sender(url, owner.CADRE_ADMIN_API_KEY),
    key: owner.CADRE_ADMIN_API_KEY,
    service: await startProcess(settings),
    async start() {
      test.service = await startProcess(settings)
    },
    async open(path, { screen = 'desk', allowed } = {}) {
      const context = await browser.newContext({
        viewport: screen === 'desk' ? desk : telephone,
        hasTouch: screen === 'telephone',
        baseURL: url,
        ...(session ? { storageState: session } : {}),
      })
      context.setDefaultTimeout(patience_ms)
      const page = await context.newPage()
      watch(page, url, allowed)
      if (!session) {
        await signIn(page)
        session = await context.storageState()
      }
      await page.goto(path)
      return page
    },
    async stop() {
      await browser.close()
      await test.service.end()
      await opened.close()
      await database.drop()
    },
  }
  return test
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
 * The screen as it stands, light and dark, on a telephone and a desk: no serious fault that axe can see, nothing wider than
 * its window, no error. With `CADRE_SCREENSHOTS` pictures go to that folder, to be looked at.
 */
export async function checkScreen(page: Page, name: string): Promise<void> {
  const before = page.viewportSize()
  const found: string[] = []
  for (const size of [desk, telephone]) {
    await page.setViewportSize(size)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      // Two frames: the first lays out, and what is measured in it is drawn in the second. Then what moves has come to rest.
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
      await page.waitForFunction(
        '!document.getAnimations().some(({ playState, effect }) => playState === "running" && effect.getComputedTiming().endTime !== Infinity)',
      )
      const picture = `${name}-${size.width}-${colorScheme}`
      const folder = process.env.CADRE_SCREENSHOTS
      if (folder) {
        await mkdir(folder, { recursive: true })
        await page.screenshot({ path: join(folder, `${picture}.png`) })
      }
      for (const fault of await seriousFaults(page)) found.push(`${picture}: ${fault}`)
    }
  }
  if (before) await page.setViewportSize(before)
  await page.emulateMedia({ colorScheme: null, reducedMotion: null })
  assert.deepEqual(found, [])
  checkPage(page)
}

interface Violation {
  id: string
  impact: string | null
  nodes: { html: string; failureSummary?: string }[]
}

async function seriousFaults(page: Page): Promise<string[]> {
  // By the browser's own door, which the page's policy does not close.
  const violations: Violation[] = await page.evaluate(
    `${axe.source}; axe.run().then(({ violations }) => violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.slice(0, 3) })))`,
  )
  const isWider: boolean = await page.evaluate('document.documentElement.scrollWidth > window.innerWidth')
  const faults = violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(' | ')}`,
    )
  return isWider ? [...faults, 'wider than its window'] : faults
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
  await page.getByRole('combobox', { name: `${label}: ` }).click()
  await page.getByLabel(`${label}, by a part of its name`).fill(name)
  await page.getByRole('option', { name, exact: true }).click()
  await page.getByRole('combobox', { name: `${label}: ${name}` }).waitFor()
}
