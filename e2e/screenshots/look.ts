import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { Demo } from './demo.ts'
import type { Shot } from './shots.ts'

/** Half the size of a desk and of a telephone, side by side: a picture of both is one small file. */
const desk = { width: 1440, height: 900 }
const telephone = { width: 390, height: 844 }
const height_px = 360
const widths_px = [desk, telephone].map(({ width, height }) => Math.round((width / height) * height_px))

/** Pictures are compared by the mean colour of squares of so many pixels: how letters are smoothed does not count. */
const cell_px = 8
/** A square differs by more than this, of 255. */
const cellDifferenceMax = 20

/** What differs with every run and every machine: times, charts, and the font of code, which is the machine's own. */
const steady = `
  :root { --font-mono: 'Inter Variable' !important; }
  time, canvas, svg:not(.lucide) { visibility: hidden !important; }
  * { caret-color: transparent !important; }
`

/** Numbers, durations and ids become the same ones. */
const steadyText = `(() => {
  const steady = (text) => text
    .replace(/\\b[a-z]+_[0-9a-z]{4,}[0-9a-z…]*|\\b[0-9a-f]{8,}\\b/g, 'id')
    .replace(/\\d[\\d.,:]*/g, '0')
    .replace(/\\b0 ?(ms|s|sec|min|hr|h)\\b\\.?( 0 ?(ms|s|sec|min)\\b\\.?)?/g, '0 s')
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const next = node.parentElement.closest('time') ? 'a while ago' : steady(node.data)
    if (next !== node.data) node.data = next
  }
  for (const field of document.querySelectorAll('input, textarea'))
    if (field.type !== 'checkbox' && field.type !== 'file') field.value = steady(field.value)
})()`

/** Opens the page of a shot and waits until it is as it will be. */
export async function openShot(page: Page, shot: Shot, demo: Demo): Promise<void> {
  await page.setViewportSize(desk)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.goto(shot.path(demo))
  await page.getByText(shot.until).first().waitFor()
  await shot.before?.(page)
  await page.waitForSelector('.animate-pulse', { state: 'detached' })
  await page.waitForSelector('[data-connection=connecting], [data-connection=reconnecting]', { state: 'detached' })
}

/** A picture of a shot on a desk, light, and on a telephone, dark, as WebP. `studio` is an empty page that draws it. */
export async function lookOf(page: Page, studio: Page, shot: Shot, demo: Demo): Promise<Buffer> {
  await openShot(page, shot, demo)
  // The policy of the page forbids style elements; a constructed sheet is none.
  await page.evaluate(`(() => {
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(${JSON.stringify(steady)})
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
  })()`)
  const views: string[] = []
  for (const [size, colorScheme] of [
    [desk, 'light'],
    [telephone, 'dark'],
  ] as const) {
    await page.setViewportSize(size)
    await page.emulateMedia({ colorScheme })
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    await page.evaluate(steadyText)
    views.push((await page.screenshot()).toString('base64'))
  }
  const data: string = await studio.evaluate(`(async () => {
    const views = ${JSON.stringify(views)}
    const widths = ${JSON.stringify(widths_px)}
    const canvas = document.createElement('canvas')
    canvas.width = widths[0] + widths[1]
    canvas.height = ${height_px}
    const context = canvas.getContext('2d')
    context.imageSmoothingQuality = 'high'
    for (const [at, view] of views.entries()) {
      const bitmap = await createImageBitmap(await (await fetch('data:image/png;base64,' + view)).blob())
      context.drawImage(bitmap, at === 0 ? 0 : widths[0], 0, widths[at], ${height_px})
    }
    return canvas.toDataURL('image/webp', 0.7)
  })()`)
  return Buffer.from(data.split(',')[1]!, 'base64')
}

/** How much of a picture differs from the approved one, 0 to 1; 1 where they have another size. */
export async function differenceOf(studio: Page, approved: string, now: Buffer): Promise<number> {
  const files = [await readFile(approved), now].map((file) => file.toString('base64'))
  return studio.evaluate(`(async () => {
    const draw = async (file) => {
      const bitmap = await createImageBitmap(await (await fetch('data:image/webp;base64,' + file)).blob())
      const full = new OffscreenCanvas(bitmap.width, bitmap.height)
      const context = full.getContext('2d')
      context.drawImage(bitmap, 0, 0)
      return context.getImageData(0, 0, bitmap.width, bitmap.height)
    }
    const [a, b] = [await draw(${JSON.stringify(files[0])}), await draw(${JSON.stringify(files[1])})]
    if (a.width !== b.width || a.height !== b.height) return 1
    let cells = 0
    let other = 0
    for (let top = 0; top + ${cell_px} <= a.height; top += ${cell_px})
      for (let left = 0; left + ${cell_px} <= a.width; left += ${cell_px}) {
        const sums = [0, 0, 0]
        for (let y = top; y < top + ${cell_px}; y++)
          for (let x = left; x < left + ${cell_px}; x++)
            for (let c = 0; c < 3; c++) sums[c] += a.data[(y * a.width + x) * 4 + c] - b.data[(y * a.width + x) * 4 + c]
        cells++
        if (sums.some((sum) => Math.abs(sum) / ${cell_px ** 2} > ${cellDifferenceMax})) other++
      }
    return other / cells
  })()`)
}

/** Where the approved picture of a shot is. */
export function approvedPath(group: string, name: string): string {
  return join(import.meta.dirname, '../browser/approved', group, `${name}.webp`)
}
