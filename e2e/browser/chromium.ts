import { existsSync } from 'node:fs'
import axe from 'axe-core'
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

/** What axe finds wrong with a page that may run scripts, and `wider` where it does not fit its window. */
export async function faultsOf(page: Page): Promise<string[]> {
  // By the browser's own door, which the page's policy does not close.
  const found: string[] = await page.evaluate(
    `${axe.source}; axe.run().then(({ violations }) => violations.map(({ id }) => id))`,
  )
  const isWider: boolean = await page.evaluate('document.documentElement.scrollWidth > window.innerWidth')
  return isWider ? [...found, 'wider'] : found
}
