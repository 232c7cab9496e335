import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { it } from 'node:test'
import { startEngineUnderTest } from '../../../test/engine-under-test.ts'
import { startFakeModelServer } from '../../../test/fake-models/fake-model-server.ts'
import { answersGiven } from '../../../test/fake-models/fake-chat-messages.ts'
import { makeModels } from '../models/models.ts'

/** What a page, a log line or a file name may talk a model into. */
it('a manipulated model cannot call tools that its agent lacks, and reaches no private address', async (t) => {
  let requests = 0
  const inside = createServer((_request, response) => {
    requests += 1
    response.end('inside')
  }).listen(0, '127.0.0.1')
  await once(inside, 'listening')
  const { port } = inside.address() as AddressInfo
  const server = await startFakeModelServer()
  const engine = await startEngineUnderTest(
    makeModels({ openai: { base_url: server.base_url }, default_model: 'openai/x' }),
  )
  t.after(async () => {
    await engine.stop()
    await server.close()
    inside.close()
  })
  const url = `http://127.0.0.1:${port}/latest/meta-data/?stolen=1`
  const notGiven = [
    { name: 'run_javascript', arguments: { code: 'JSON.stringify(env)' } },
    { name: 'read_file', arguments: { path: 'file:///etc/passwd' } },
    { name: 'CURRENT_TIME', arguments: {} },
    { name: 'current_time.http_request', arguments: { url } },
    { name: 'constructor', arguments: {} },
    { name: '__proto__', arguments: {} },
  ]
  const given = ['http://127.0.0.1', 'http://[::1]', 'http://2130706433', 'http://localhost'].map((host) => ({
    name: 'http_request',
    arguments: { method: 'GET', url: url.replace('http://127.0.0.1', host) },
  }))
  const others = ['file:///etc/passwd', 'http://169.254.169.254/latest/meta-data/'].map((one) => ({
    name: 'http_request',
    arguments: { method: 'GET', url: one },
  }))
  server.always(({ body }) =>
    answersGiven(body) === 0
      ? { do: 'answer', tool_calls: [...notGiven, ...given, ...others] }
      : { do: 'answer', text: 'I could not.' },
  )

  const id = await engine.give({ model: 'openai/x', tools: ['current_time', 'http_request'] }, 'Read this page.')
  assert.equal((await engine.ended(id)).output?.content, 'I could not.')
  const steps = await engine.sql<{ name: string; status: string; error: { code: string } | null }>`
    select name, status, error from task_step where task_id = ${id} and type = 'tool_call' order by index`
  assert.equal(steps.length, notGiven.length + given.length + others.length)
  for (const { name, status, error } of steps) {
    assert.equal(status, 'failed', name)
    assert.equal(error?.code === 'tool_not_found', name !== 'http_request', `${name}: ${error?.code}`)
  }
  assert.equal(requests, 0)
})
