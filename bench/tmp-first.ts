import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { startProcess } from '../e2e/process.ts'
import { startFakeModelServer } from '../server/test/fake-model-server.ts'
const key = 'cadre_00112233445566778899aabbccddeeff'
const headers = { 'x-api-key': key, 'content-type': 'application/json' }
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const provider = await startFakeModelServer()
const service = await startProcess({
  CADRE_DATA_DIR: folder,
  CADRE_ADMIN_API_KEY: key,
  CADRE_RATE_LIMITS_SCALE: '1000000',
  CADRE_PROVIDER_FAKE_BASE_URL: provider.base_url,
})
const dispatcher = new Agent({ connections: 8 })
async function send(path: string, body: unknown, more = {}) {
  const a = await request(service.url + path, {
    dispatcher,
    method: 'POST',
    headers: { ...headers, ...more },
    body: JSON.stringify(body),
  })
  return JSON.parse(await a.body.text())
}
async function get(path: string) {
  const a = await request(service.url + path, { dispatcher, headers })
  return JSON.parse(await a.body.text())
}
const { id: project } = await send('/api/v1/projects', { name: 'bench' })
const { id } = await send(`/api/v1/projects/${project}/agents`, { name: 'a', config: { model: 'fake/some-model' } })
const path = `/api/v1/projects/${project}/agents/${id}`
const med = (a: number[]) => a.sort((x, y) => x - y)[a.length >> 1]!.toFixed(2)
const T: Record<string, number[]> = {}
const note = (k: string, ms: number) => (T[k] ??= []).push(ms)
for (let i = 0; i < 400; i++) {
  let t = performance.now()
  await get(path)
  note('get agent', performance.now() - t)
  t = performance.now()
  const made = await send(`${path}/tasks`, { input: 'hello there' })
  note('create', performance.now() - t)
  await get(`/api/v1/projects/${project}/tasks/${made.id}?wait=5`)
  t = performance.now()
  const a = await request(`${service.url}${path}/tasks`, {
    dispatcher,
    method: 'POST',
    headers: { ...headers, accept: 'text/event-stream' },
    body: JSON.stringify({ input: 'hello there' }),
  })
  note('headers', performance.now() - t)
  let seen = ''
  const had = new Set<string>()
  for await (const c of a.body) {
    seen += String(c)
    for (const [, e] of seen.matchAll(/event: (\S+)/g))
      if (!had.has(e!)) {
        had.add(e!)
        note('event ' + e, performance.now() - t)
      }
  }
  note('end', performance.now() - t)
  t = performance.now()
  await send(`${path}/tasks?wait=10`, { input: 'hello there' })
  note('waited', performance.now() - t)
}
for (const [k, v] of Object.entries(T)) console.log(k.padEnd(30), v.length, med(v))
await service.end()
await dispatcher.close()
await provider.close()
await rm(folder, { recursive: true, force: true })
