import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { auditActions } from '#contract/accounts/audit.ts'
import { openApiDocument } from '#contract/openapi/openapi.ts'
import { operations } from '#contract/operations.ts'
import { startTestService } from '../../../test/harness.ts'
import { createProject } from '../../../test/fixtures.ts'

const guide = readFileSync(new URL('../../../../docs/guides/audit.md', import.meta.url), 'utf8')
const examples = [...guide.matchAll(/```sh\n(.*?)```/gs)].map(([, text = '']) => text)

function hasJq(): boolean {
  try {
    execFileSync('jq', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

it('the guide of the audit log does what it says', async (t) => {
  const test = await startTestService()
  const folder = await mkdtemp(join(tmpdir(), 'cadre-guide-'))
  t.after(async () => {
    await test.stop()
    await rm(folder, { recursive: true })
  })
  const project = await createProject(test.send, 'guide')
  const agents = `${project.path}/agents`
  const { body: agent } = await test.send('POST', agents, { body: { name: 'guided', config: { temperature: 0.2 } } })
  await test.send('PUT', `${agents}/${agent.id}`, { body: { config: { temperature: 0.4 } } })
  await test.send('POST', '/api/v1/auth/api-keys', { body: { name: 'guide', scopes: ['read'] } })
  await test.send('POST', '/api/v1/auth/login', {
    key: null,
    body: { email: test.owner.email, password: 'not the password' },
  })

  const env = { ...process.env, CADRE: `${test.url}/api/v1`, KEY: test.owner.api_key, AGENT: agent.id }
  const run = async (text: string) => (await promisify(execFile)('sh', ['-c', text], { cwd: folder, env })).stdout
  const rest = [...examples]
  const next = () => rest.shift() ?? assert.fail('the guide has fewer examples')
  const actionsOf = (text: string): string[] => JSON.parse(text).entries.map(({ action }: any) => action)

  const all = ['user.sign_in_failed', 'api_key.created', 'agent.updated', 'agent.created', 'project.created']
  assert.deepEqual(actionsOf(await run(next())), all)
  const [ofAgent = '', ofKeys = ''] = next().split('\n')
  assert.deepEqual(actionsOf(await run(ofAgent)), ['agent.updated', 'agent.created'])
  assert.deepEqual(actionsOf(await run(ofKeys)), ['api_key.created', 'api_key.created'])
  await run(next())
  const exported = readFileSync(join(folder, 'audit.ndjson'), 'utf8').trimEnd().split('\n')
  assert.deepEqual(
    exported
      .map((line) => JSON.parse(line))
      .flatMap(({ action, detail }) => (detail.reason === 'first_start' ? [] : action)),
    all.toReversed(),
  )

  assert.equal(rest.length, 3)
  if (!hasJq()) return t.diagnostic('jq is not installed: its examples were not run')
  assert.match(await run(next()), /^\S+\t\tkey_\w{26}\t\n\d{4}-\S+\t[^\t]+\tkey_\w{26}\t127\.0\.0\.1\n$/)
  assert.deepEqual(JSON.parse(await run(next())), [{ ip: '127.0.0.1', count: 1 }])
  const temperatures = (await run(next())).trimEnd().split('\n')
  assert.deepEqual(
    temperatures.map((line) => JSON.parse(line)).map(({ was, is }) => [was, is]),
    [
      [null, 0.2],
      [0.2, 0.4],
    ],
  )
})

it('the entry that the guide shows is one of the API, and its actions are known', () => {
  const [, text = ''] = /```json\n(.*?)```/s.exec(guide) ?? assert.fail('the guide shows an entry')
  const entry = JSON.parse(text)
  const { components } = openApiDocument(operations, { version: '0', server_url: 'http://127.0.0.1:8080' })
  const { AuditEntry }: any = components.schemas
  assert.deepEqual(Object.keys(entry), Object.keys(AuditEntry.properties))
  const named = [...guide.matchAll(/"([a-z_]+\.[a-z_]+)"/g)].map(([, action = '']) => action)
  assert.ok(named.length >= 3)
  assert.deepEqual(
    named.filter((action) => !Object.hasOwn(auditActions, action)),
    [],
  )
})
