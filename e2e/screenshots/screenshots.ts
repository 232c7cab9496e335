import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { checkPage, startConsole } from '../browser/console.ts'
import { makeDemo, type Demo } from './demo.ts'

/** Pictures of every page, of which those with `isKept` are in the documentation. */
interface Shot {
  name: string
  path: (demo: Demo) => string
  /** What is there once the page is ready. */
  until: string | RegExp
  isKept?: boolean
  before?: (page: Page) => Promise<void>
}

const of = (path: string) => (demo: Demo) => `/p/${demo.project}${path}`
const agent = (search: string) => (demo: Demo) => `/p/${demo.project}/agents/${demo.agents['support-desk']}${search}`
const task =
  (name: keyof Demo['tasks'], search = '') =>
  (demo: Demo) =>
    `/p/${demo.project}/tasks/${demo.tasks[name]}${search}`

const shots: Shot[] = [
  { name: 'home', path: of(''), until: 'Latest tasks', isKept: true },
  { name: 'agents', path: of('/agents'), until: 'support-desk', isKept: true },
  { name: 'agent', path: agent(''), until: 'Instructions', isKept: true },
  { name: 'agent-trends', path: agent('?tab=metrics'), until: 'Duration of a task' },
  { name: 'agent-versions', path: agent('?tab=config&version=1'), until: 'From version', isKept: true },
  {
    name: 'agent-edit',
    path: (demo) => `/p/${demo.project}/agents/${demo.agents['support-desk']}/edit`,
    until: 'Model',
  },
  { name: 'tasks', path: of('/tasks'), until: 'Do you ship to Norway?', isKept: true },
  { name: 'task', path: task('completed'), until: 'qualifies for a refund', isKept: true },
  { name: 'task-waterfall', path: task('delegated', '?view=waterfall'), until: 'delegate_translator', isKept: true },
  { name: 'task-failed', path: task('failed'), until: 'invoice', isKept: true },
  { name: 'task-waiting', path: task('waiting'), until: 'Approve' },
  { name: 'task-running', path: task('running'), until: 'Sum up yesterday.' },
  { name: 'task-events', path: task('completed', '?view=events'), until: 'task.completed' },
  { name: 'approvals', path: of('/approvals'), until: 'Approve', isKept: true },
  { name: 'tool-calls', path: of('/tool-calls'), until: 'Tool calls' },
  { name: 'triggers', path: of('/triggers'), until: 'Triggers' },
  { name: 'logs', path: of('/logs'), until: 'lines' },
  { name: 'metrics', path: of('/metrics?range=7d'), until: 'Duration of a task', isKept: true },
  { name: 'playground', path: of('/playground'), until: 'Playground' },
  { name: 'usage', path: of('/usage?group=model'), until: 'Cost by day', isKept: true },
  { name: 'budgets', path: of('/usage?tab=budgets'), until: 'Warns at' },
  { name: 'limits', path: of('/usage?tab=limits'), until: 'Refused with 429' },
  { name: 'start', path: of('/start'), until: 'First' },
  { name: 'projects', path: () => '/projects', until: 'storefront' },
  { name: 'webhooks', path: () => '/webhooks', until: 'Webhooks' },
  { name: 'keys', path: () => '/settings/keys', until: 'checkout' },
  { name: 'sessions', path: () => '/settings/sessions', until: 'Sessions' },
  { name: 'apps', path: () => '/settings/apps', until: 'OAuth apps' },
  { name: 'members', path: () => '/settings/members', until: 'Members' },
  { name: 'audit', path: () => '/settings/audit', until: 'agent.created' },
  { name: 'preferences', path: () => '/settings/preferences', until: 'Dates and numbers' },
  {
    name: 'command-menu',
    path: of('/agents'),
    until: 'support-desk',
    isKept: true,
    async before(page) {
      await page.keyboard.press('Control+k')
      await page.getByRole('listbox').waitFor()
    },
  },
]

/** A picture of the documentation is not larger. */
const kept_bytes = 100_000

/**
 * `npm run screenshots`: pictures of every page of the console on a service with demonstration data, light and dark, on a desk, a tablet
 * and a telephone, in `CADRE_SCREENSHOTS` (`/tmp/cadre-screenshots` without it); and twelve of them in `docs/images`. Words
 * choose pages by name: `npm run screenshots -- task home`.
 */
const words = process.argv.slice(2).filter((word) => !word.startsWith('-'))
const isShort = process.argv.includes('--desk')
const folder = process.env.CADRE_SCREENSHOTS ?? '/tmp/cadre-screenshots'
const images = join(import.meta.dirname, '../../docs/images')
await mkdir(folder, { recursive: true })
await mkdir(images, { recursive: true })
const cadre = await startConsole({ CADRE_EGRESS_ALLOW: 'loopback' })
try {
  const demo = await makeDemo(cadre)
  const page = await cadre.open('/projects')
  for (const shot of shots) {
    if (words.length > 0 && !words.includes(shot.name)) continue
    try {
      await take(page, shot, demo)
    } catch (error) {
      console.error(`${shot.name}: ${String(error).slice(0, 300)}`)
      process.exitCode = 1
    }
  }
  checkPage(page)
} finally {
  await cadre.stop()
}

async function take(page: Page, shot: Shot, demo: Demo): Promise<void> {
  page.setDefaultTimeout(20_000)
  await page.setViewportSize({ width: 1440, height: 900 })
  await page.emulateMedia({ colorScheme: 'light' })
  await page.goto(shot.path(demo))
  await page.getByText(shot.until).first().waitFor()
  await shot.before?.(page)
  await page.waitForSelector('.animate-pulse', { state: 'detached' })
  if (shot.isKept) await keep(page, shot.name)
  for (const width of isShort ? [1440] : [1440, 768, 390])
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize({ width, height: width === 390 ? 844 : 900 })
      await page.emulateMedia({ colorScheme })
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
      await page.screenshot({ path: join(folder, `${shot.name}-${width}-${colorScheme}.png`) })
    }
}

/** A picture that a reader of the documentation loads fast: WebP by the browser's own encoder, in lower quality where it is large. */
async function keep(page: Page, name: string): Promise<void> {
  const png = await page.screenshot()
  const encoder = await page.context().newPage()
  await encoder.goto('about:blank')
  const path = join(images, `${name}.webp`)
  for (const quality of [0.9, 0.8, 0.7, 0.6]) {
    const data: string = await encoder.evaluate(
      `(async () => {
        const bitmap = await createImageBitmap(await (await fetch('data:image/png;base64,${png.toString('base64')}')).blob())
        const canvas = document.createElement('canvas')
        canvas.width = bitmap.width
        canvas.height = bitmap.height
        canvas.getContext('2d').drawImage(bitmap, 0, 0)
        return canvas.toDataURL('image/webp', ${quality})
      })()`,
    )
    await writeFile(path, Buffer.from(data.split(',')[1]!, 'base64'))
    if ((await stat(path)).size <= kept_bytes) break
  }
  await encoder.close()
  if ((await readFile(path)).length > kept_bytes) {
    await rm(path)
    throw new Error(`the picture ${name} is larger than ${kept_bytes} bytes`)
  }
}
