import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import {
  type FakeModelServer,
  type FakeRequest,
  startFakeModelServer,
} from '../../server/test/fake-models/fake-model-server.ts'
import { eventually, startTestService, type TestService } from '../../server/test/harness.ts'
import { createProject } from '../../server/test/fixtures.ts'

/** Probes that do not pass yet: none may be added. */
const baseline: readonly string[] = []

let service: TestService
let provider: FakeModelServer

before(async () => {
  provider = await startFakeModelServer()
  // A model that obeys: it calls the tool that it is forced to, and answers with the JSON that a schema asks for.
  provider.always(({ body }: FakeRequest) => {
    const tool = ((body['tools'] ?? []) as { name?: string; function?: { name: string } }[]).at(-1)
    const name = tool?.function?.name ?? tool?.name
    const format = (body['response_format'] ?? (body['text'] as { format?: unknown } | undefined)?.format) as
      | { type: string }
      | undefined
    if (name !== undefined) return { do: 'answer', tool_calls: [{ name, arguments: { value: 'CANARY_OK' } }] }
    return { do: 'answer', text: format?.type === 'json_schema' ? '{"status":"ok"}' : 'CANARY_OK' }
  })
  service = await startTestService({ OPENAI_BASE_URL: provider.base_url, OPENAI_API_KEY: 'sk-canary' })
  const project = await createProject(service.send, 'canary')
  const path = `${project.path}/agents`
  const { body: agent } = await service.send('POST', path, {
    body: { name: 'helper', config: { model: 'openai/gpt-4o-mini' } },
  })
  await eventually(async () => (await service.send('GET', `${path}/${agent.id}`)).body.status === 'running')
})
after(async () => {
  await service.stop()
  await provider.close()
})

it('CompatCanary finds /v1 compatible', async (t) => {
  const scanner = fileURLToPath(new URL('cli.js', import.meta.resolve('compatcanary')))
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [
      ...[scanner, 'scan', '--base-url', `${service.url}/v1`, '--model', 'canary/helper', '--profile', 'modern'],
      ...['--format', 'json', '--timeout', '120', '--fail-on', 'never'],
    ],
    { env: { ...process.env, OPENAI_API_KEY: service.owner.api_key, NODE_OPTIONS: '' } },
  )
  const { results } = JSON.parse(stdout) as { results: { id: string; status: string; summary: string }[] }
  assert.ok(results.length >= 7, stdout)
  const failed = results.filter(({ status }) => status !== 'pass')
  t.diagnostic(`${results.length - failed.length} of ${results.length} probes passed`)
  assert.deepEqual(
    failed.map(({ id }) => id),
    baseline,
    JSON.stringify(failed),
  )
})
