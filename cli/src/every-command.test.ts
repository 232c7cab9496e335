import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Ajv } from 'ajv'
import type { Operation } from '#contract/core/operation.ts'
import { operations } from '#contract/operations.ts'
import { assertDeclared } from '../../server/test/contract/declared.ts'
import { type TestService } from '../../server/test/harness.ts'
import { shareTestService } from '../../server/test/shared-service.ts'
import { sample } from '../../server/test/long-run.ts'
import { Samples } from '../../server/test/contract/samples.ts'
import { Runner } from '../test/runner.ts'
import { leaves } from './output/help-tree.ts'
import { clientProgram } from './program.ts'
import { kindOf, optionOf, type Schema } from './operations/fields.ts'

/**
 * Commands with separate tests, because they log in or out, follow streams, have no single operation, or need an
 * organization that is alone on its service.
 */
const apart = [
  'login',
  'logout',
  'api',
  'tasks watch',
  'projects watch',
  'files upload',
  'agents logs',
  'approvals approve',
  'webhooks trigger',
  'system drain',
  'system resume',
]

let service: TestService
let samples: Samples
let home: string
let env: Record<string, string>
const runner = new Runner()
before(async () => {
  service = await shareTestService()
  samples = await Samples.make(service)
  home = await mkdtemp(join(tmpdir(), 'cadre-every-command-'))
  env = { HOME: home, XDG_CONFIG_HOME: home, CADRE_BASE_URL: service.url, CADRE_PROJECT: String(samples.project_id) }
  await mkdir(join(home, 'cadre'))
  const { token } = (await samples.credential('token')) as { token: string }
  await writeFile(
    join(home, 'cadre', 'credentials.json'),
    JSON.stringify({ default: { base_url: service.url, access_token: token } }),
  )
})
after(async () => {
  runner.stop()
  await service.stop()
  await rm(home, { recursive: true })
})

const withCommand = operations.filter(({ command = 'login' }) => !apart.includes(command))
for (const operation of sample(withCommand, 40)) {
  const commandName = operation.command!
  test(
    `\`cadre ${commandName}\` calls ${operation.id} and prints its declared result`,
    { timeout: 60_000 },
    async () => {
      const line = await lineOf(operation, commandName)
      const own = operation.credentials.includes('api_key') ? { ...env, CADRE_API_KEY: samples.key } : env
      const { code, stdout, stderr } = await runner.run([...line, '--json'], own)
      assert.equal(code, 0, `${line.join(' ')}\n${stderr}`)
      const [response] = operation.responses
      if (response?.schema) assertDeclared(operation, replyOf(operation, JSON.parse(stdout)))
      else assert.notEqual(stdout, '')
      if (operation.method !== 'GET') return
      // Also the output for a terminal and a pipe.
      for (const isTerminal of [true, false]) {
        const seen = await runner.run(line, own, isTerminal)
        assert.equal(seen.code, 0, seen.stderr)
        assert.doesNotMatch(seen.stdout, /undefined|\[object |NaN/)
        if (response?.schema) assert.equal(isTerminal && seen.stdout.includes('\t'), false)
      }
    },
  )
}

test('the example of every command with a body matches the contract', { timeout: 60_000 }, async () => {
  const ajv = new Ajv({ strict: false, validateFormats: false })
  for (const file of ['value.txt', 'secret.txt', 'api_key.txt'])
    await writeFile(join(home, file), `whsec_${btoa('k'.repeat(32))}`)
  const sends = operations.filter(({ command, body }) => body && !apart.includes(command ?? 'login'))
  const commands = new Map(leaves(clientProgram({}), '').map((command) => [command.command, command.examples[0]!]))
  for (const { id, command, body } of sends) {
    const example = commands.get(`cadre ${command}`) ?? assert.fail(id)
    const args = [...example.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word)
    const line = args.slice(1).map((word) => (word.endsWith('.txt') ? join(home, word) : word))
    const { code, stdout, stderr } = await runner.run([...line, '--dry-run'], env)
    assert.equal(code, 0, `${example}\n${stderr}`)
    assert.ok(ajv.validate(body!, JSON.parse(stdout).body), `${example}\n${JSON.stringify(ajv.errors)}`)
  }
  assert.ok(sends.length > 25)
})

test('--dry-run of a hand-written command prints the method, path and body of its request', async () => {
  const file = join(home, 'value.txt')
  await writeFile(file, 'nine byte')
  const project = '/api/v1/projects/7'
  for (const [line, expected] of [
    ['agents resume agent_1', { path: `${project}/agents/agent_1/start` }],
    ['approvals approve appr_1', { path: `${project}/approvals/appr_1/resolve`, body: { decision: 'approve' } }],
    ['approvals deny appr_1', { path: `${project}/approvals/appr_1/resolve`, body: { decision: 'reject' } }],
    ['credentials connect cred_1', { path: `${project}/credentials/cred_1/authorize` }],
    [`files upload ${file}`, { path: `${project}/files`, body: { name: 'value.txt', bytes: 9 } }],
    ['tasks run agent_1 Hello', { path: `${project}/agents/agent_1/tasks`, body: { input: 'Hello' } }],
  ] as const) {
    const { code, stdout, stderr } = await runner.run([...line.split(' '), '--project', '7', '--dry-run'], env)
    assert.equal(code, 0, `${line}\n${stderr}`)
    assert.deepEqual(JSON.parse(stdout), { method: 'POST', ...expected }, line)
  }
  const { stdout } = await runner.run(['webhooks', 'trigger', 'agent.failed', 'wh_1', '--dry-run'], env)
  assert.deepEqual(JSON.parse(stdout), [
    { method: 'POST', path: '/api/v1/webhooks/wh_1/test', body: { event: 'agent.failed' } },
  ])
})

/** Arguments of a command for the sample of an operation: each member of the body as an option. */
async function lineOf(operation: Operation, commandName: string): Promise<string[]> {
  const sample = await samples.of(operation)
  const [parts, given] = [operation.path.split('/'), sample.path.split('/')]
  const ids = parts.flatMap((part, at) =>
    part.startsWith('{') && (part !== '{project_id}' || commandName.startsWith('projects ')) ? [given[at]!] : [],
  )
  const members: Record<string, Schema> = (operation.body as Schema | undefined)?.properties ?? {}
  const options = [...new URL(sample.path, 'http://service').searchParams].flatMap(([name, value]) => [
    `--${name.replaceAll('_', '-')}`,
    value,
  ])
  for (const [name, value] of Object.entries((sample.body ?? {}) as Record<string, unknown>)) {
    const schema = members[name] ?? assert.fail(`${operation.id} has no ${name}`)
    if (schema['x-secret']) {
      const path = join(home, `${operation.id}-${name}`)
      await writeFile(path, String(value))
      options.push(`${optionOf(name)}-file`, path)
    } else if (kindOf(schema) === 'list' && Array.isArray(value))
      options.push(...value.flatMap((one) => [optionOf(name), String(one)]))
    else options.push(optionOf(name), typeof value === 'string' ? value : JSON.stringify(value))
  }
  return [...commandName.split(' '), ...ids, ...options, ...(operation.method === 'DELETE' ? ['--yes'] : [])]
}

/** The response that belongs to the output of a command; for a list the command prints only the entries. */
function replyOf(operation: Operation, written: unknown) {
  const { status, example } = operation.responses[0]!
  const whole = Array.isArray(written) ? { ...(example as object), [memberOf(operation)]: written } : written
  const headers = new Headers({ 'content-type': 'application/json', 'x-request-id': `req_${'0'.repeat(24)}` })
  return { status, headers, body: whole }
}

function memberOf({ responses }: Operation): string {
  const { properties: answer = {} }: Schema = responses[0]?.schema ?? {}
  return Object.keys(answer).find((name) => answer[name]!.items) ?? assert.fail('it is no list')
}
