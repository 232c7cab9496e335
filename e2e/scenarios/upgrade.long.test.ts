import assert from 'node:assert/strict'
import { cp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { eventually, makeTestDatabase, sender } from '../../server/test/harness.ts'
import { laterVersion } from './later-version.ts'
import {
  databaseEnvironment,
  refusedStart,
  runCommand,
  type RunningService,
  startProcess,
  temporaryFolder,
} from '../process.ts'
import { startLoad } from '../workload/steady-load.ts'
import { createProject } from '../../server/test/fixtures.ts'

const api_key = `cadre_${'0a1b2c3d4e5f6789'.repeat(2)}`
const patience_ms = 60_000
const root = new URL('../..', import.meta.url).pathname

describe('a version and the one before it on one database (promise R15)', () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let env: Record<string, string>
  let old: RunningService
  let last: string
  const running: RunningService[] = []
  const start = async (...command: [string, ...string[]]): Promise<RunningService> => {
    const service = await startProcess(env, command.length > 1 ? { command } : {})
    running.push(service)
    return service
  }
  before(async () => {
    database = await makeTestDatabase()
    folder = await temporaryFolder()
    env = {
      ...databaseEnvironment(database.connection),
      CADRE_ADMIN_API_KEY: api_key,
      CADRE_RATE_LIMITS_SCALE: '10000',
      CADRE_LOG_LEVEL: 'warn',
    }
    last = (await readdir(join(root, 'server/migrations'))).sort().at(-1)!.slice(0, 4)
    old = await start('')
  })
  after(async () => {
    await Promise.all(running.map((service) => service.end()))
    await database.drop()
    await folder.remove()
  })

  it('a version and the one before it on one database work side by side after an additive migration that was made under load, and the older one can be started again', async () => {
    const later = await laterVersion(
      folder.path,
      '9998_later.sql',
      `-- runs-with: ${last}\nalter table agent add column later text not null default 'none';\nalter table task add column later text not null default 'none';\nalter table task_step add column later text;\ncreate table later (id bigint primary key);\n`,
    )
    const send = sender(old.url, api_key)
    const project = await createProject(send, 'both')
    const agents = `${project.path}/agents`
    const { body: agent } = await send('POST', agents, { body: { name: 'echo', config: { model: 'builtin/echo' } } })
    let number = 0
    const load = startLoad(old.url, {
      key: api_key,
      per_second: 40,
      connections: 8,
      requests: [
        { method: 'GET', path: `${agents}/${agent.id}`, status: 200 },
        { method: 'POST', path: agents, body: () => ({ name: `made-${number++}` }), status: 201 },
        { method: 'POST', path: `${agents}/${agent.id}/tasks?wait=30`, body: () => ({ input: 'hello' }), status: 201 },
        { method: 'GET', path: `${agents}/${agent.id}/tasks`, status: 200 },
      ],
    })
    await eventually(async () => load.answered() > 20, patience_ms)
    const migrated = await runCommand(env, ['migrate'], undefined, join(later, 'cadre.mjs'))
    assert.deepEqual([migrated.code, migrated.stderr], [0, ''])
    const fresh = await start(process.execPath, join(later, 'cadre.mjs'), 'serve')
    const from = load.answered()
    await eventually(async () => load.answered() > from + 40, patience_ms)
    assert.deepEqual((await load.stop()).failed, [])

    const again = await start('')
    for (const service of [fresh, again, old]) {
      const { status, body } = await sender(service.url, api_key)('POST', `${agents}/${agent.id}/tasks?wait=60`, {
        body: { input: 'on all of them' },
      })
      assert.deepEqual([status, body.status], [201, 'completed'])
    }
  })

  it('a migration that asks for the new version keeps the older one from starting, and ends none that runs', async () => {
    const later = await laterVersion(folder.path, '9999_latest.sql', 'create table latest (id bigint primary key);\n')
    await cp(
      join(folder.path, '9998_later.sql/server/migrations/9998_later.sql'),
      join(later, 'server/migrations/9998_later.sql'),
    )
    assert.equal((await runCommand(env, ['migrate'], undefined, join(later, 'cadre.mjs'))).code, 0)
    const { code, output } = await refusedStart(env)
    assert.equal(code, 1)
    assert.match(output, /ahead of this build: it has migration 9999_latest\.sql/)
    assert.equal((await fetch(`${old.url}/readyz`)).status, 200)
    assert.equal((await sender(old.url, api_key)('GET', '/api/v1/projects')).status, 200)
  })
})
