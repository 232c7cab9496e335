import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import Fastify, { type FastifyInstance } from 'fastify'
import { startTestService, type TestService } from '../../../../test/harness.ts'
import { consoleRoutes } from './console.routes.ts'

let folder: string
let app: FastifyInstance

const page = '<!doctype html><head><base href="/"><title>Cadre</title></head>'
const script = `export const text = '${'x'.repeat(2000)}'`
const asPerson = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cadre-console-'))
  await build(page)
  await writeFile(join(folder, 'built-from'), 'abc')
  app = serving(folder)
})

after(async () => {
  await app.close()
  await rm(folder, { recursive: true })
})

async function build(text: string): Promise<void> {
  await mkdir(join(folder, 'assets'), { recursive: true })
  await writeFile(join(folder, 'assets/main-abc.js'), script)
  await writeFile(join(folder, 'assets/main-abc.js.gz'), gzipSync(script))
  await writeFile(join(folder, 'theme.js'), 'dark()')
  await writeFile(join(folder, 'index.next'), text)
  await rename(join(folder, 'index.next'), join(folder, 'index.html'))
}

function serving(from: string): FastifyInstance {
  const made = Fastify() as unknown as FastifyInstance
  const pages = consoleRoutes(made, true, from)
  made.setNotFoundHandler(async (request, reply) => {
    if (!(await pages.answer(request, reply))) reply.code(404).send({ error: 'path_not_found' })
    return reply
  })
  return made
}

function get(url: string, headers: Record<string, string> = {}, from = app) {
  return from.inject({ url, headers })
}

test('a browser gets the console at any path that the API has not, and nothing may be cached', async () => {
  for (const url of ['/', '/projects/7', '/projects/7/tasks/task_1?step=3']) {
    const answer = await get(url, asPerson)
    assert.equal(answer.statusCode, 200, url)
    assert.match(answer.headers['content-type'] as string, /^text\/html/)
    const policy = answer.headers['content-security-policy'] as string
    assert.match(policy, /^default-src 'self'; /)
    assert.match(policy, /frame-ancestors 'none'/)
    assert.doesNotMatch(policy, /unsafe|https:|\*/)
  }
})

test('an unknown path of the API is 404 for every client; so is any path for clients that do not accept HTML', async () => {
  for (const url of [
    '/api/v1/nothing',
    '/api',
    '/oauth2/nothing',
    '/.well-known/nothing',
    '/assets/gone.js',
    '/docs/no',
  ])
    assert.equal((await get(url, asPerson)).statusCode, 404, url)
  assert.equal((await get('/projects/7')).statusCode, 404)
  assert.equal((await app.inject({ method: 'POST', url: '/projects/7', headers: asPerson })).statusCode, 404)
})

test('a page names the way up from its path as its base, so it works below any path of a proxy', async () => {
  const bases = { '/': './', '/projects': './', '/projects/7': '../', '/projects/7/tasks/': '../../../' }
  for (const [url, base] of Object.entries(bases))
    assert.ok((await get(url, asPerson)).body.includes(`<base href="${base}">`), url)
})

test('files are kept for ever by their names, sent compressed to who can read that, and are all that is served', async () => {
  const plain = await get('/assets/main-abc.js')
  assert.equal(plain.body, script)
  assert.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable')
  assert.match(plain.headers['content-type'] as string, /^text\/javascript/)
  const zipped = await get('/assets/main-abc.js', { 'accept-encoding': 'br, gzip' })
  assert.equal(zipped.headers['content-encoding'], 'gzip')
  assert.equal(zipped.headers.vary, 'accept-encoding')
  assert.deepEqual(zipped.rawPayload, gzipSync(script))
  assert.equal((await get('/assets/main-abc.js', { 'accept-encoding': 'gzip;q=0' })).body, script)

  assert.equal((await get('/theme.js')).headers['cache-control'], 'no-cache')
  for (const url of ['/built-from', '/assets/../built-from', '/assets/..%2ftheme.js', '/assets/main-abc.js.gz'])
    assert.equal((await get(url)).statusCode, 404, url)
})

test('a new build is served without a restart, and until there is one a page says how to make it', async () => {
  const empty = join(folder, 'empty')
  await mkdir(empty)
  const unbuilt = serving(empty)
  const answer = await get('/', asPerson, unbuilt)
  assert.equal(answer.statusCode, 503)
  assert.match(answer.body, /npm start/)
  await unbuilt.close()

  await build(page.replace('Cadre', 'Newer'))
  assert.match((await get('/', asPerson)).body, /Newer/)
})

test('CADRE_CONSOLE=off leaves the API alone at its origin', async () => {
  const service: TestService = await startTestService({ CADRE_CONSOLE: 'off' })
  try {
    const root = await service.send('GET', '/', { headers: asPerson })
    assert.deepEqual([root.status, root.headers.get('location')], [303, '/docs'])
    const deep = await service.send('GET', '/projects/7', { headers: asPerson })
    assert.deepEqual([deep.status, deep.body.error?.code], [404, 'RESOURCE_NOT_FOUND'])
  } finally {
    await service.stop()
  }
})
