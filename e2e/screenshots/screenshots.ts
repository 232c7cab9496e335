import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Page } from 'playwright-core'
import { checkPage, startConsole } from '../browser/console.ts'
import { startDemoServers } from './demo-resources.ts'
import { makeDemo, type Demo } from './demo.ts'
import { approvedPath, differenceOf, lookOf, openShot } from './look.ts'
import { shots, type Shot } from './shots.ts'

/** A picture of the documentation is not larger. */
const kept_bytes = 100_000
/** Other machines smooth letters in another way; a part of a page that is moved or gone is more than this. */
const differenceMax = 0.02

/**
 * `npm run screenshots`: pictures of every page of the console on a service with demonstration data, light and dark, on a desk, a tablet
 * and a telephone, in `CADRE_SCREENSHOTS` (`/tmp/cadre-screenshots` without it); and twelve of them in `docs/images`. Words
 * choose pages by name: `npm run screenshots -- task home`. With `--approve` it makes the pictures of every
 * page in `e2e/browser/approved` instead: look at what changed before you commit them. `--compare` prints how much each page
 * differs from its approved picture, and exits with 1 where that is more than 2 %.
 */
const args = process.argv.slice(2).filter((word) => !word.startsWith('-'))
const isShort = process.argv.includes('--desk')
const isApproving = process.argv.includes('--approve')
const isComparing = process.argv.includes('--compare')
const folder = process.env.CADRE_SCREENSHOTS ?? '/tmp/cadre-screenshots'
const images = join(import.meta.dirname, '../../docs/images')
await mkdir(folder, { recursive: true })
await mkdir(images, { recursive: true })
const servers = await startDemoServers()
const cadre = await startConsole({ CADRE_EGRESS_ALLOW: 'loopback' })
try {
  const demo = await makeDemo(cadre, servers)
  const page = await cadre.open('/projects', { allowed: /404/ })
  const studio = await cadre.browser.newPage()
  for (const [group, shot] of Object.entries(shots).flatMap(([group, all]) =>
    all.map((shot) => [group, shot] as const),
  )) {
    if (args.length > 0 && !args.includes(shot.name)) continue
    try {
      if (isApproving) await approve(page, studio, group, shot, demo)
      else if (isComparing) await compare(page, studio, group, shot, demo)
      else await take(page, shot, demo)
    } catch (error) {
      console.error(`${shot.name}: ${String(error).slice(0, 300)}`)
      process.exitCode = 1
    }
  }
  checkPage(page)
} finally {
  await cadre.stop()
  await servers.close()
}

async function take(page: Page, shot: Shot, demo: Demo): Promise<void> {
  page.setDefaultTimeout(20_000)
  await openShot(page, shot, demo)
  if (shot.isKept) await keep(page, shot.name)
  for (const width of isShort ? [1440] : [1440, 768, 390])
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize({ width, height: width === 390 ? 844 : 900 })
      await page.emulateMedia({ colorScheme })
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
      await page.screenshot({
        path: join(folder, `${shot.name}-${width}-${colorScheme}.png`),
        fullPage: width !== 1440,
      })
    }
}

async function approve(page: Page, studio: Page, group: string, shot: Shot, demo: Demo): Promise<void> {
  page.setDefaultTimeout(20_000)
  const path = approvedPath(group, shot.name)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, await lookOf(page, studio, shot, demo))
}

async function compare(page: Page, studio: Page, group: string, shot: Shot, demo: Demo): Promise<void> {
  page.setDefaultTimeout(20_000)
  const now = await lookOf(page, studio, shot, demo)
  const difference = await differenceOf(studio, approvedPath(group, shot.name), now)
  console.log(`${shot.name}: ${(difference * 100).toFixed(2)} %`)
  if (difference <= differenceMax) return
  await writeFile(join(folder, `${shot.name}-now.webp`), now)
  process.exitCode = 1
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
