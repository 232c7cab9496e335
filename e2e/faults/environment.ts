import { join } from 'node:path'
import { tmpdir } from 'node:os'
import { pino } from 'pino'
import { openDatabase } from '../../server/src/platform/postgres/database.ts'
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../../server/src/platform/postgres/migrate.ts'
import { sender } from '../../server/test/harness.ts'
import { makeAgents } from '../workload/agents.ts'
import type { Balancer } from '../cluster/balancer.ts'
import { startCluster, type Start } from '../cluster/cluster.ts'
import { recordMoves } from '../checker/history.ts'
import type { SystemUnderTest } from '../checker/checker.ts'
import { startLoad } from '../workload/load.ts'
import { startWorld } from '../workload/world.ts'
import { startProcess, temporaryFolder } from '../process.ts'
import { type Driver, startDriver, type Tenant } from './workload/driver.ts'
import type { Run } from './fault.ts'
import { type FaultProxy, startFaultProxy } from './nemesis/proxy.ts'
import { makeTenants } from './workload/tenants.ts'

/** The system under test: processes of each role on one PostgreSQL, behind a controlled network, under load. */
export interface Environment extends SystemUnderTest {
  postgres: EmbeddedPostgres
  /** Between the processes and PostgreSQL. */
  network: FaultProxy
  driver: Driver
  tenants: Tenant[]
  /** In front of the API processes, where there is one. */
  balancer: Balancer | undefined
  /** What every process is started with. */
  env: Record<string, string>
  /** How a process of a role is started; the name is that of its folder. `checkout` is another than this one. */
  starter: (role: 'api' | 'worker', name: string, checkout?: string) => Start
}

export interface EnvironmentOptions {
  apis?: number
  workers?: number
  /** Requests of the control plane a second. */
  rate?: number
  /** Callers who give tasks, one after the other. */
  taskCallers?: number
  env?: Record<string, string>
  /** Settings of PostgreSQL. */
  settings?: Record<string, string>
  /** Where callers go, if not to the processes themselves: it gets their addresses before the load begins. */
  balancer?: Balancer
  /** Where PostgreSQL keeps its data; a new folder where nothing is said. */
  folder?: string
}

const api_key = 'cadre_00112233445566778899aabbccddeeff'
/** Processes keep what was compiled of them: a start costs a fraction. */
const compiled = process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'cadre-test-compiled')

/** Starts everything, and the load. All of it ends with the run. */
export async function startEnvironment(run: Run, options: EnvironmentOptions = {}): Promise<Environment> {
  const { rng, atEnd } = run
  const { apis = 2, workers = 2, rate = run.short ? 30 : 60, taskCallers = run.short ? 3 : 6 } = options
  let path = options.folder
  if (!path) {
    const folder = await temporaryFolder()
    atEnd(folder.remove)
    ;({ path } = folder)
  }
  // A killed process loses nothing that it has written; only a machine that stops does, and none does here.
  const settings = { fsync: 'off', max_connections: '200', ...options.settings }
  const postgres = await startEmbeddedPostgres({ data_dir: path, log: pino({ level: 'silent' }), settings })
  atEnd(() => postgres.stop())
  const database = openDatabase({ connection: postgres.connection })
  atEnd(() => database.close())
  await migrate(database.sql)
  await database.sql.script(recordMoves)
  const { host, port, user } = postgres.connection
  const network = await startFaultProxy({ path: `${host}/.s.PGSQL.${port}` })
  atEnd(() => network.close())
  const world = await startWorld(rng.fork())
  atEnd(() => world.close())

  const env = {
    DATABASE_URL: `postgres://${user}@127.0.0.1:${network.port}/${postgres.connection.database}`,
    CADRE_SECRET_KEY: 'a secret key that all processes share',
    CADRE_ADMIN_API_KEY: api_key,
    CADRE_RATE_LIMITS_SCALE: '1000',
    CADRE_TOKENS_PER_HOUR: '1000000000000',
    CADRE_EGRESS_ALLOW: 'loopback',
    CADRE_PROVIDER_FAKE_BASE_URL: world.model.base_url,
    CADRE_WORKER_SLOTS: '8',
    CADRE_LOG_LEVEL: 'fatal',
    NODE_COMPILE_CACHE: compiled,
    ...options.env,
  }
  const start: Environment['starter'] = (role, name, checkout) => () => {
    const args = ['--role', role]
    return startProcess(
      { CADRE_DATA_DIR: join(path, name), ...env },
      checkout ? { command: [process.execPath, join(checkout, 'cadre.mjs'), 'serve', ...args] } : { args },
    )
  }
  const cluster = await startCluster(rng.fork(), {
    services: Array.from({ length: apis }, (_, i) => start('api', `api-${i}`)),
    workers: Array.from({ length: workers }, (_, i) => start('worker', `worker-${i}`)),
  })
  atEnd(() => cluster.close())
  const { balancer } = options
  for (const { url } of cluster.there('service')) await balancer?.add(url!)

  const { project, agents, threads } = await makeAgents(sender(cluster.url()!, api_key), world)
  const tenants = await makeTenants(database.sql, cluster.url()!, rng)
  const front = balancer ? { ...cluster, url: () => balancer.url } : cluster
  const load = startLoad({
    cluster: front,
    rng: rng.fork(),
    api_key,
    project,
    agents,
    threads,
    callers: taskCallers,
  })
  const urls = (): string[] => (balancer ? [balancer.url] : cluster.there('service').flatMap(({ url }) => url ?? []))
  const driver = startDriver({ rng: rng.fork(), urls, tenants, rate })
  return {
    cluster,
    load,
    world,
    sql: database.sql,
    agents,
    postgres,
    network,
    driver,
    tenants,
    env,
    balancer,
    starter: start,
  }
}
