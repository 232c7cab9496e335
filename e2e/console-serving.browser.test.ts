import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { inBrowser } from './chromium.ts'
import { checkPage, startConsole, type TestConsole } from './console.ts'

let cadre: TestConsole
let proxy: Server
let project: string

before(async () => {
  if (inBrowser.skip) return
  cadre = await startConsole()
  project = String((await cadre.send('POST', '/api/v1/projects', { body: { name: 'shop' } })).body.id)
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
})

after(async () => {
  await cadre?.stop()
  proxy?.closeAllConnections()
  proxy?.close()
})

test('below a path that a proxy takes away, a page deep in the console loads, reads and links', inBrowser, async () => {
  const page = await cadre.open('/')
  const { port } = proxy.address() as AddressInfo
  const asked: string[] = []
  const behind = await page.context().newPage()
  behind.on('response', (response) => {
    if (response.status() >= 400) asked.push(`${response.status()} ${response.url()}`)
  })
  await behind.goto(`http://127.0.0.1:${port}/team/cadre/p/${project}/tasks?status=failed`)
  await behind.getByText('No task matches').waitFor()
  await behind.getByRole('link', { name: 'Approvals' }).click()
  await behind.getByText('Nothing waits for you').waitFor()
  assert.equal(new URL(behind.url()).pathname, `/team/cadre/p/${project}/approvals`)
  await behind.reload()
  await behind.getByText('Nothing waits for you').waitFor()
  assert.deepEqual(asked, [])
  checkPage(page)
})

test('the first load is at most 300 KB, compressed by gzip', inBrowser, async () => {
  const page = await cadre.open('/')
  await page.getByRole('heading', { level: 1 }).waitFor()
  const loaded = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name))
  const files = [...new Set(loaded)].filter((name) => /[.](js|css|svg)$/.test(name))
  const sizes = await Promise.all(files.map(compressedSize))
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  assert.ok(bytes > 50_000 && bytes <= 300_000, `${bytes} bytes in ${files.length} files`)
})

/** What comes over the line for a file, in bytes. */
async function compressedSize(url: string): Promise<number> {
  const asked = request(url, { headers: { 'accept-encoding': 'gzip' } }).end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  let bytes = 0
  for await (const chunk of answer) bytes += (chunk as Buffer).length
  return bytes
}
