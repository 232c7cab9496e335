import cluster from 'node:cluster'
import { availableParallelism } from 'node:os'
import { readConfig } from '../config/config.ts'
import { makeLog } from '../platform/log.ts'
import { type Role, roles } from '../roles.ts'
import { CommandError, defineCommand, UsageError } from './command.ts'
import { layFoundation } from './foundation.ts'
import { runService } from './run-service.ts'
import { runPart, supervise, type Serving } from './serve-processes.ts'

/** Maximum number of processes; each needs connections of the database. */
const processesMax = 64

/** `cadre serve`, and `npm start`: runs the service until SIGINT or SIGTERM. */
export const serve = defineCommand({
  description:
    'Starts the service with its embedded database, or on the PostgreSQL of DATABASE_URL, and runs it until SIGINT or SIGTERM. ' +
    'It then reports not ready, accepts requests for CADRE_DRAIN_SECONDS, answers requests in flight, requeues its tasks and ' +
    'exits; a second signal exits at once.\n' +
    'Migrates the database at the start. Refuses to start if the database has migrations that this version does not know.',
  examples: ['cadre serve', 'cadre serve --processes auto'],
  arguments: [],
  options: {
    role: {
      type: 'string',
      value: 'role',
      description:
        'api answers requests and runs no tasks; worker runs tasks, schedules, webhooks and retention, and answers only /livez ' +
        'and /readyz; all (the default) does both. api and worker need DATABASE_URL.',
    },
    processes: {
      type: 'string',
      value: 'count',
      description: 'Number of processes that share the port; auto is one per core. A process that dies is restarted.',
    },
  },
  async run({ env, signal, print, options }) {
    const role = readRole(options.role)
    const processes = readProcesses(options.processes)
    const config = readConfig(env)
    if (role !== 'all' && !config.database_url)
      throw new CommandError(`--role ${role} needs DATABASE_URL: other services cannot reach the embedded database.`)
    if (cluster.isWorker) return runPart({ config, role, signal, print })
    return processes > 1
      ? supervise({ config, role, processes, signal, print })
      : serveAlone({ config, role, signal, print })
  },
})

async function serveAlone({ config, role, signal, print }: Serving): Promise<number> {
  const log = makeLog(config.log_level, config.secrets)
  for (const warning of config.warnings) log.warn(warning)
  return runService({
    config,
    role,
    log,
    signal,
    foundation: layFoundation(config, { log, signal }),
    print,
    async onReady(service, credentials_file) {
      const { welcome } = await import('../welcome.ts')
      print(welcome(service, credentials_file, Math.round(performance.now())))
      if (signal.aborted) print('Stopping.')
      else signal.addEventListener('abort', () => print('Stopping.'), { once: true })
    },
  })
}

function readRole(text: string | undefined): Role {
  const role = roles.find((one) => one === (text ?? 'all'))
  if (!role) throw new UsageError(`--role must be one of ${roles.join(', ')}, not "${text}".`)
  return role
}

function readProcesses(text: string | undefined): number {
  if (text === undefined) return 1
  if (text === 'auto') return availableParallelism()
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > processesMax)
    throw new UsageError(`--processes must be a number from 1 to ${processesMax}, or auto, not "${text}".`)
  return count
}
