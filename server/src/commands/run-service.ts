import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { FirstOwner } from '../first-start.ts'
import type { Role } from '../roles.ts'
import type { Service } from '../service.ts'
import { WrongSecretKeyAtStart } from '../platform/crypto/secrets.ts'
import { CommandError } from './command.ts'
import { explainDatabaseError } from './database-fault.ts'
import type { Foundation } from './foundation.ts'
import { isInterrupted } from './interrupted.ts'
import { boundHeap } from '../platform/memory/heap-bounds.ts'

/** Maximum duration of a stop. Tasks are durable, so work in flight continues at the next start. */
export const stopTimeout_ms = 30_000

export interface Running {
  config: Config
  role: Role
  /** Whether other processes listen on its port too. */
  shares_port?: boolean
  log: Logger
  /** Stops the service. */
  signal: AbortSignal
  /** May be pending: the database starts while this process loads the rest of the program. */
  foundation: Promise<Foundation>
  print: (text: string) => void
  /** Called once, when the service is ready. */
  onReady: (service: Service, credentials_file: string | undefined) => Promise<void> | void
}

/** Runs one process of the service until `signal` aborts, and returns its exit code. */
export async function runService(running: Running): Promise<number> {
  const { config, role, shares_port, log, signal, print, onReady } = running
  let foundation: Foundation | undefined
  let service: Service | undefined
  let credentials_file: string | undefined
  let owner: FirstOwner | undefined
  boundHeap()
  const end = async (): Promise<void> => {
    await service?.stop()
    await foundation?.close()
  }
  try {
    const [{ startService }, laid] = await Promise.all([import('../service.ts'), running.foundation])
    foundation = laid
    service = await startService({
      config,
      role,
      shares_port,
      secret_key: laid.secret_key,
      connection: laid.connection,
      log,
      keepCredentials: async (made) => {
        owner = made
        const stored = Object.entries(made).filter(([name]) => made.generated.includes(name))
        credentials_file = await laid.keepCredentials(Object.fromEntries(stored))
      },
    })
    await onReady(service, credentials_file)
    if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  } catch (error) {
    // The owner is stored already, so no later start will show these credentials.
    if (!service && owner) await showGenerated(owner, credentials_file, print)
    await end()
    // An interrupted start is not an error.
    if (isInterrupted(error)) return 0
    if (error instanceof WrongSecretKeyAtStart) throw new CommandError(error.message, error)
    throw listenError(explainDatabaseError(error, config), config)
  }
  setTimeout(() => process.exit(1), stopTimeout_ms + config.drain_seconds * 1000).unref()
  await end()
  return 0
}

/** Prints the generated credentials of a first start that failed later. */
export async function showGenerated(
  owner: FirstOwner,
  credentials_file: string | undefined,
  print: (text: string) => void,
): Promise<void> {
  const { generatedLines } = await import('../welcome.ts')
  const lines = generatedLines(owner, credentials_file)
  if (lines.length > 0) print(['', ...lines].join('\n'))
}

/** Turns an error of listening into a `CommandError` for the operator; returns any other error unchanged. */
export function listenError(error: unknown, { host, port }: Config): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE')
    return new CommandError(`Port ${port} on ${host} is in use. Set PORT to another port, or to 0 for any free port.`)
  if (code === 'EADDRNOTAVAIL')
    return new CommandError(`The address ${host} does not belong to this machine. Set HOST to one of its addresses.`)
  if (code === 'EACCES') return new CommandError(`This user may not use port ${port}. Set PORT to 1024 or higher.`)
  return error
}
