import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { chromium, type Browser, type Page } from 'playwright-core'
import { atEnd, isGroup } from '../../server/test/at-end.ts'

/** The headless browser comes first: it uses a quarter less processor time. */
const executablePath = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find(existsSync)

/** Options of a test that needs a browser; it is skipped if there is none. */
export const inBrowser = { skip: executablePath ? false : 'there is no Chromium here' }

let shared: { browser: Promise<Browser>; users: number } | undefined

/** Its process must end before this one: only then its processor time counts. */
async function closeShared(): Promise<void> {
  const last = shared
  shared = undefined
  await (await last?.browser)?.close()
}
atEnd.push(closeShared)

/**
 * The browser of this process, for tests that open contexts in it. It ends with the process, or with its last user where a file runs alone.
 * The first user decides the options.
 */
export async function useBrowser(options?: BrowserOptions): Promise<{ browser: Browser; release(): void }> {
  shared ??= { browser: launchBrowser(options), users: 0 }
  const mine = shared
  mine.users += 1
  return {
    browser: await mine.browser,
    release() {
      mine.users -= 1
      if (mine.users === 0 && !isGroup) void closeShared()
    },
  }
}

export interface BrowserOptions {
  /** Whether it optimizes hot scripts, like a user's browser. A page of a test ends before that pays off. */
  optimizes?: boolean
}

/** A browser without background requests to the network. */
export function launchBrowser({ optimizes = false }: BrowserOptions = {}): Promise<Browser> {
  return chromium.launch({
    ...(executablePath === undefined ? {} : { executablePath }),
    args: [
      '--no-sandbox',
      '--disable-quic',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...(optimizes ? [] : ['--js-flags=--no-opt,--no-maglev']),
    ],
  })
}

/** A page of a browser with scripts off, at the size of a telephone or a desk. */
export async function openPage(
  browser: Browser,
  { width, colorScheme }: { width: number; colorScheme: 'light' | 'dark' },
  javaScriptEnabled = false,
): Promise<Page> {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, javaScriptEnabled })
  return context.newPage()
}

/** A rule of axe that a page violates. */
interface Violation {
  id: string
  impact: string | null
  nodes: { html: string; failureSummary?: string }[]
}

const axe = readFile(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** Violations that axe finds on a page that may run scripts. */
export async function violationsOf(page: Page): Promise<Violation[]> {
  // By the browser's own door, which the page's policy does not close. A document keeps the half megabyte.
  if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(await axe)
  return page.evaluate(
    `axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
      violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.slice(0, 3) })))`,
  )
}

/** Violations that axe finds on a page, and `wider` if the page is wider than its window. */
export async function faultsOf(page: Page): Promise<string[]> {
  const found = (await violationsOf(page)).map(({ id }) => id)
  return (await isWider(page)) ? [...found, 'wider'] : found
}

/** Names of tables that are too wide for their place, so that columns are out of sight. */
export function cutTables(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll('.overflow-x-auto > table')]
    .filter(({ parentElement }) => parentElement.scrollWidth > parentElement.clientWidth + 1)
    .map((table) => table.getAttribute('aria-label') ?? '')`)
}

/** Whether a page is wider than its window. */
export function isWider(page: Page): Promise<boolean> {
  return page.evaluate('document.documentElement.scrollWidth > window.innerWidth')
}
