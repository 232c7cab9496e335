import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { startTestService } from '../../../test/harness.ts'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { createProject } from '../../../test/fixtures.ts'

const guide = readFileSync(new URL('../../../../docs/guides/tools.md', import.meta.url), 'utf8')
const examples = [...guide.matchAll(/```http\n(\w+) (\S+)\n\n(.*?)```/gs)].map(
  ([, method = '', path = '', body = '']) => ({
    method,
    path,
    body,
  }),
)

it('the guide of the tools does what it says', async (t) => {
  const keys: unknown[] = []
  const api = await startLocalServer(t, (request, response) => {
    keys.push(request.headers.authorization)
    response.end(`rain, and your key is ${request.headers.authorization}`)
  })
  const test = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback' })
  t.after(() => test.stop())
  const project = await createProject(test.send, 'guide')
  const base = project.path
  const made: Record<string, string> = {}
  assert.ok(examples.length >= 6)
  for (const { method, path, body } of examples) {
    const at = `${base}${path.replace('{tool_id}', made.send_invoice ?? '')}`
    const reply = await test.send(method, at, {
      body: body
        .replaceAll('https://api.example.com', api.url)
        .replaceAll('"api.example.com"', `"${new URL(api.url).host}"`),
    })
    assert.equal(reply.status, method === 'POST' ? 201 : 200, JSON.stringify(reply.body))
    made[reply.body.name] = reply.body.id
  }
  const outputOf = async (agent: string) => {
    const path = `${base}/agents/${made[agent]}/tasks?wait=30`
    const { body } = await test.send('POST', path, { body: { input: 'Go.' } })
    assert.equal(body.status, 'completed', JSON.stringify(body))
    return body.output.content
  }
  assert.ok(guide.includes(`Its tasks end with \`${await outputOf('counter')}\``))
  assert.equal(await outputOf('forecaster'), 'rain, and your key is Bearer [redacted]')
  assert.deepEqual(keys, ['Bearer a-secret-of-yours'])
  assert.ok(guide.includes(`sends \`${api.requests[0]}\``))
})
