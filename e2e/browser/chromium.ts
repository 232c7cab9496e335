import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { chromium, type Browser, type Page } from 'playwright-core'

/** The one without a window first: it takes a quarter less of the processors. */
const executablePath = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find(existsSync)

/** Options of a test that needs a browser: it is left out where there is none. */
export const inBrowser = { skip: executablePath ? false : 'there is no Chromium here' }

let shared: { browser: Promise<Browser>; users: number; closing?: NodeJS.Timeout } | undefined

/** How long a browser without users waits for the next file of its process. */
const linger_ms = 1000

/** The browser of this process, for tests that open contexts in it; the last file that releases it ends it. */
export async function useBrowser(): Promise<{ browser: Browser; release(): void }> {
  shared ??= { browser: launchBrowser(), users: 0 }
  const mine = shared
  clearTimeout(mine.closing)
  mine.users += 1
  const browser = await mine.browser
  return {
    browser,
    release() {
      mine.users -= 1
      if (mine.users > 0) return
      mine.closing = setTimeout(() => {
        if (shared === mine) shared = undefined
        void browser.close()
      }, linger_ms)
    },
  }
}

/** A browser without background requests to the network. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    ...(executablePath === undefined ? {} : { executablePath }),
    args: [
      '--no-sandbox',
      '--disable-quic',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
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

/** A rule of axe that a page breaks. */
interface Violation {
  id: string
  impact: string | null
  nodes: { html: string; failureSummary?: string }[]
}

const axe = readFile(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** What axe finds wrong with a page that may run scripts, as it stands. */
export async function violationsOf(page: Page): Promise<Violation[]> {
  // By the browser's own door, which the page's policy does not close. A document keeps the half megabyte.
  if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(await axe)
  return page.evaluate(
    `axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
      violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.slice(0, 3) })))`,
  )
}

/** What axe finds wrong with a page, and `wider` where it does not fit its window. */
export async function faultsOf(page: Page): Promise<string[]> {
  const found = (await violationsOf(page)).map(({ id }) => id)
  return (await isWider(page)) ? [...found, 'wider'] : found
}

/** Names of the tables that are wider than their place, so that columns are out of sight. */
export function cutTables(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll('.overflow-x-auto > table')]
    .filter(({ parentElement }) => parentElement.scrollWidth > parentElement.clientWidth + 1)
    .map((table) => table.getAttribute('aria-label') ?? '')`)
}

/** Whether a page is wider than its window. */
export function isWider(page: Page): Promise<boolean> {
  return page.evaluate('document.documentElement.scrollWidth > window.innerWidth')
}
