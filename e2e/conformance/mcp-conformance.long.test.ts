import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { OAuthDriver } from '../../server/test/oauth.ts'
import { startTestService, type TestService } from '../../server/test/harness.ts'
import { expectedFailures } from './mcp-baseline.ts'
import { addFixtures, proxyOf } from './mcp-fixtures.ts'

/** Checks of tools that no agent can stand for are in the baseline, and none may be added. */
const kit = fileURLToPath(new URL('index.js', import.meta.resolve('@modelcontextprotocol/conformance/dist/index.js')))

let service: TestService
let proxy: Server
let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cadre-conformance-'))
  service = await startTestService()
  await addFixtures(service)
  proxy = await proxyOf(service)
})
after(async () => {
  proxy.closeAllConnections()
  proxy.close()
  await service.stop()
  await rm(folder, { recursive: true, force: true })
})

interface Check {
  id: string
  status: string
  errorMessage?: string
}

/** Its settings are those of this process, but for what the test runner gives its own. */
const env = { ...process.env, NODE_OPTIONS: '' }

async function run(args: readonly string[], output: string): Promise<Map<string, Check[]>> {
  // A run with failures ends with 1: what failed is read from its results.
  await promisify(execFile)(process.execPath, [kit, ...args, '--output-dir', output], {
    env,
    maxBuffer: 64 * 1024 * 1024,
  }).catch((error: { code?: unknown; stderr?: string }) => assert.equal(error.code, 1, error.stderr))
  return resultsIn(output)
}

async function resultsIn(output: string): Promise<Map<string, Check[]>> {
  const scenarios = new Map<string, Check[]>()
  for (const name of await readdir(output)) {
    const scenario = name.replace(/^server-/, '').replace(/-\d{4}-\d{2}-\d{2}T.*$/, '')
    scenarios.set(scenario, JSON.parse(await readFile(join(output, name, 'checks.json'), 'utf8')) as Check[])
  }
  return scenarios
}

describe('the conformance suite of MCP', () => {
  for (const [revision, baseline] of Object.entries(expectedFailures))
    it(`the conformance suite of MCP passes at /mcp for the revision ${revision}, except for the baseline`, async (t) => {
      const { port } = proxy.address() as AddressInfo
      const args = [
        'server',
        '--requirements',
        revision,
        '--url',
        `http://127.0.0.1:${port}/mcp`,
        '--timeout',
        '120000',
      ]
      const scenarios = await run(args, join(folder, revision))
      const checks = [...scenarios].flatMap(([scenario, all]) => all.map((check) => ({ scenario, ...check })))
      const failed = checks.filter(({ status }) => status === 'FAILURE')
      t.diagnostic(`${checks.length - failed.length} of ${checks.length} checks did not fail`)
      const names = new Set(failed.map(({ scenario, id }) => `${scenario}/${id}`))
      if (process.env['CADRE_PRINT_BASELINE']) console.log(JSON.stringify([...names].toSorted(), undefined, 2))
      const added = failed.filter(({ scenario, id }) => !baseline.includes(`${scenario}/${id}`))
      assert.deepEqual(added, [], 'checks failed that did not before')
      const deleted = baseline.filter((name) => !names.has(name))
      assert.deepEqual(deleted, [], 'these pass: take them out of the baseline')
    })

  it('the conformance suite of MCP passes for the authorization server, with a person who signs in and consents', async () => {
    const driver = new OAuthDriver(service)
    // The kit sends no secret to a service that knows public clients, so its client is one.
    const client = await driver.client('kit', {
      ...{ redirect_uri: 'http://127.0.0.1/callback', native: true, isPublic: true },
      scopes: ['agents:read', 'tasks:write'],
    })
    const output = join(folder, 'authorization')
    const args = ['authorization', '--url', service.url, '--output-dir', output, '--port', String(await freePort())]
    const child = spawn(
      process.execPath,
      [kit, ...args, '--client-id', client.client_id, '--resource', `${service.url}/mcp`],
      { env },
    )
    let said = ''
    let allowed: Promise<Response> | undefined
    const read = (chunk: Buffer): void => {
      said += String(chunk)
      const address = /^http\S+\/oauth2\/authorize\S+$/m.exec(said)?.[0]
      // The kit listens by the time that it has said so.
      if (address !== undefined && said.includes('Callback server started'))
        allowed ??= driver.authorize(address).then(({ left }) => fetch(left))
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    const [code] = (await once(child, 'exit')) as [number | null]
    const scenarios = await resultsIn(output)
    const checks = [...scenarios.values()].flat()
    assert.ok(checks.length >= 3, JSON.stringify(checks))
    assert.deepEqual(
      checks.filter(({ status }) => status === 'FAILURE' || status === 'SKIPPED'),
      [],
    )
    assert.deepEqual([code, (await allowed)?.status], [0, 200], said)
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
