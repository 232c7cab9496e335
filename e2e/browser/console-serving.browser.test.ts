import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { inBrowser } from './chromium.ts'
import { fillSignIn, startConsole, type TestConsole } from './console.ts'

let cadre: TestConsole
let proxy: Server
let project: string
/** The service below a path that a proxy strips. */
let outside: string

before(async () => {
  if (inBrowser.skip) return
  proxy = createServer((from, to) => {
    const path = from.url?.startsWith('/team/cadre/') ? from.url.slice('/team/cadre'.length) : undefined
    if (path === undefined) return to.writeHead(421).end()
    const onward = request(new URL(path, cadre.url), { method: from.method, headers: from.headers }, (answer) => {
      to.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(to)
    })
    onward.on('error', () => to.destroy())
    from.pipe(onward)
    to.on('close', () => onward.destroy())
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => proxy.once('listening', resolve))
  outside = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/team/cadre`
  cadre = await startConsole({ CADRE_PUBLIC_URL: outside })
  project = String((await cadre.send('POST', '/api/v1/projects', { body: { name: 'shop' } })).body.id)
})

after(async () => {
  await cadre?.stop()
  proxy?.closeAllConnections()
  proxy?.close()
})

test('a user signs in, opens deep pages and signs out below a path that a proxy strips', inBrowser, async () => {
  const context = await cadre.browser.newContext({ viewport: { width: 1440, height: 900 } })
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const refused: string[] = []
  page.on('response', (response) => {
    // A visitor without a session is refused by the API, and redirected to sign in.
    if (response.status() >= 400 && response.status() !== 401) refused.push(`${response.status()} ${response.url()}`)
  })
  await page.goto(`${outside}/p/${project}/tasks?status=failed`)
  await fillSignIn(page)
  await page.getByText('No matching tasks').waitFor()
  assert.equal(page.url(), `${outside}/p/${project}/tasks?status=failed`)
  await page.getByRole('link', { name: 'Approvals' }).click()
  await page.getByText('No pending approvals').waitFor()
  assert.equal(page.url(), `${outside}/p/${project}/approvals`)
  await page.reload()
  await page.getByText('No pending approvals').waitFor()
  await page.getByRole('button', { name: /^Account of/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.waitForURL(`${outside}/login`)
  await page.getByLabel('Password').waitFor()
  assert.deepEqual(refused, [])
})

test('the first load of the console is at most 300 KB with gzip', inBrowser, async () => {
  const page = await cadre.browser.newPage()
  await page.goto(`${outside}/login`)
  await fillSignIn(page)
  await page.getByRole('heading', { level: 1 }).waitFor({ timeout: 60_000 })
  const loaded = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name))
  const files = [...new Set(loaded)].filter((name) => /[.](js|css|svg|woff2)$/.test(name))
  assert.ok(
    files.some((name) => /inter-latin[^/]*[.]woff2$/.test(name)),
    'the font comes with the service',
  )
  const sizes = await Promise.all(files.map(compressedSize))
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  assert.ok(bytes > 50_000 && bytes <= 300_000, `${bytes} bytes in ${files.length} files`)
})

/** Transferred bytes of a file. */
async function compressedSize(url: string): Promise<number> {
  const asked = request(url, { headers: { 'accept-encoding': 'gzip' } }).end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  let bytes = 0
  for await (const chunk of answer) bytes += (chunk as Buffer).length
  return bytes
}
