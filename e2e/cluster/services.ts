import { after, before } from 'node:test'
import type pg from 'pg'
import { startProcess, type RunningService } from '../process.ts'
import { makeInstallations, type Installations } from '../scenarios/installations.ts'
import { startBalancer, type Balancer } from './balancer.ts'

/** Processes of the service on one new database, for tests that kill them. */
export interface Services {
  /** Those that run, in the order of their starts. */
  running: ReadonlySet<RunningService>
  start(): Promise<RunningService>
  /** Ends one as `kill -9` does, and waits for its end. */
  kill(service: RunningService): Promise<void>
  /** A connection to their database. */
  client(): pg.Client
}

/** Processes behind a balancer. */
export interface BalancedServices extends Services {
  /** The address of the balancer. */
  url(): string
}

/**
 * Makes a database before the tests of a file, and ends its processes after them. Call it at the top of the file.
 * `settings` are added to the environment of each process.
 */
export function useServices(settings: Record<string, string> = {}): Services {
  const running = new Set<RunningService>()
  let installations: Installations
  let external: Awaited<ReturnType<Installations['external']>>
  before(async () => {
    installations = await makeInstallations()
    external = await installations.external()
  })
  after(async () => {
    for (const service of running) await service.end()
    await installations.close()
  })
  return {
    running,
    async start() {
      const service = await startProcess({ ...external.env, PORT: '0', CADRE_METRICS_PORT: 'off', ...settings })
      running.add(service)
      return service
    },
    async kill(service) {
      running.delete(service)
      await service.end('SIGKILL')
    },
    client: () => external.client,
  }
}

/** Like `useServices`, behind a balancer: a process gets connections once it is ready, and none after it was killed. */
export function useBalancedServices(settings: Record<string, string> = {}): BalancedServices {
  let balancer: Balancer
  before(async () => void (balancer = await startBalancer()))
  const services = useServices(settings)
  after(() => balancer.close())
  return {
    ...services,
    async start() {
      const service = await services.start()
      await balancer.add(service.url)
      return service
    },
    async kill(service) {
      balancer.remove(service.url)
      await services.kill(service)
    },
    url: () => balancer.url,
  }
}
