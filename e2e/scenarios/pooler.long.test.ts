import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readFileSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { eventually, makeTestDatabase, sender } from '../../server/test/harness.ts'
import { databaseEnvironment, refusedStart, startProcess, temporaryFolder } from '../process.ts'
import { createProject } from '../../server/test/fixtures.ts'

const guide = readFileSync(new URL('../../docs/guides/running-in-production.md', import.meta.url), 'utf8')
/** What the guide tells to set, `ignore_startup_parameters` in it. */
const settings = guide.split('\n### Behind a pooler\n')[1]!.split('```ini\n')[1]!.split('\n```')[0]!
const patience_ms = 60_000

describe('behind PgBouncer in session mode', () => {
  it('the service works as the guide sets it up, and says what is wrong where it is not', async (t) => {
    if (spawnSync('pgbouncer', ['--version']).error) return t.skip('pgbouncer is not installed')
    const [database, folder] = [await makeTestDatabase(), await temporaryFolder()]
    const { host, port = 5432, database: name, user } = database.connection
    const env = { ...databaseEnvironment(database.connection), CADRE_ADMIN_API_KEY: `cadre_${'5e'.repeat(16)}` }
    /** It does not run as root: then as the account that may enter the socket of PostgreSQL. */
    const startPooler = async (more: string): Promise<{ process: ChildProcess; port: number }> => {
      const listen_port = await freePort()
      const file = join(folder.path, `${listen_port}.ini`)
      await writeFile(
        file,
        `[databases]\ncadre = host=${host} port=${port} dbname=${name} user=${user}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n` +
          `listen_port = ${listen_port}\nunix_socket_dir =\nauth_type = any\ndefault_pool_size = 60\n${more}\n`,
      )
      chmodSync(folder.path, 0o755)
      const { uid, gid } = statSync(String(host))
      const argv = process.getuid?.() === 0 ? [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', 'pgbouncer'] : []
      const [command, ...args] = [...(argv.length > 0 ? ['setpriv', ...argv] : ['pgbouncer']), '--quiet', file]
      const pooler = spawn(command, args, { stdio: 'ignore' })
      await eventually(() => canConnect(listen_port), patience_ms)
      return { process: pooler, port: listen_port }
    }
    const through = (pooler: { port: number }): Record<string, string> => ({
      ...env,
      DATABASE_URL: `postgres://${user}@127.0.0.1:${pooler.port}/cadre`,
    })
    const poolers: ChildProcess[] = []
    try {
      const strict = await startPooler('pool_mode = session')
      poolers.push(strict.process)
      const { code, output } = await refusedStart(through(strict))
      assert.deepEqual([code, /unsupported startup parameter: options/.test(output)], [1, true], output)

      const pooler = await startPooler(settings)
      poolers.push(pooler.process)
      const service = await startProcess(through(pooler))
      try {
        const send = sender(service.url, env.CADRE_ADMIN_API_KEY)
        const project = await createProject(send, 'pooled')
        const agents = `${project.path}/agents`
        const { body: agent } = await send('POST', agents, {
          body: { name: 'echo', config: { model: 'builtin/echo' } },
        })
        const tasks = await Promise.all(
          Array.from({ length: 20 }, () =>
            send('POST', `${agents}/${agent.id}/tasks?wait=60`, { body: { input: 'through the pooler' } }),
          ),
        )
        assert.deepEqual(new Set(tasks.map(({ body }) => body.status)), new Set(['completed']))
      } finally {
        assert.deepEqual(await service.end(), { code: 0, signal: null })
      }
    } finally {
      for (const one of poolers) if (one.kill('SIGINT')) await once(one, 'exit')
      await database.drop()
      await folder.remove()
    }
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

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
