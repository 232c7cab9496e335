import { lookup, Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'

/** Finds all addresses of a name, until the signal aborts. Rejects if the name has none. */
export type ResolveName = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>

export interface NameSources {
  /** Name servers with their ports; defaults to those of the system. */
  name_servers?: readonly string[]
  /** The system's resolver. */
  system?: (hostname: string) => Promise<readonly string[]>
  /** The text of the hosts file. */
  hosts?: () => Promise<string>
}

/** Queries per name server, and the timeout of the first one in milliseconds. */
const asking = { tries: 3, timeout: 1500 }
/** Once the addresses of one family are known, how long to wait for those of the other (RFC 8305 has less). */
const otherFamily_ms = 300
/** Errors without an answer, which are final. After any other error the system's resolver may know the name. */
const unanswered = new Set(['ETIMEOUT', 'ECANCELLED'])
const hostsFile = '/etc/hosts'

/**
 * Resolves names that users choose. The system's resolver blocks one of few threads of the process until a name server
 * answers or more than 10 s have passed, and cannot be stopped: two names with dead servers would block all other
 * lookups. So name servers are queried directly, in parallel. Only names that they do not know, such as those of the local
 * network and of search domains, go to the system's resolver, one at a time. Names in the hosts file are resolved by the
 * system.
 */
export function makeResolveName(sources: NameSources = {}): ResolveName {
  const { name_servers, system = askSystem, hosts = () => readFile(hostsFile, 'utf8') } = sources
  const inTurn = oneAtATime(system)
  return async (hostname, signal) => {
    signal.throwIfAborted()
    if (isHost(hostname, await hosts().catch(() => ''))) return system(hostname)
    try {
      return await askNameServers(hostname, signal, name_servers)
    } catch (error) {
      if (unanswered.has((error as NodeJS.ErrnoException).code ?? '')) throw error
      return inTurn(hostname, signal)
    }
  }
}

async function askSystem(hostname: string): Promise<readonly string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address)
}

/** Queries the name servers, with a resolver for each name because a resolver can only be canceled as a whole. */
async function askNameServers(
  hostname: string,
  signal: AbortSignal,
  name_servers: readonly string[] | undefined,
): Promise<readonly string[]> {
  const resolver = new Resolver(asking)
  if (name_servers) resolver.setServers(name_servers)
  const cancel = (): void => resolver.cancel()
  let timer: NodeJS.Timeout | undefined
  const hurry = (addresses: string[]): string[] => {
    timer ??= setTimeout(cancel, otherFamily_ms)
    return addresses
  }
  signal.addEventListener('abort', cancel, { once: true })
  try {
    const families = [resolver.resolve4(hostname).then(hurry), resolver.resolve6(hostname).then(hurry)]
    const answers = await Promise.allSettled(families)
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    if (addresses.length > 0) return addresses
    // A missing answer for one family counts first: the name may exist.
    const failures = answers.map((answer) => (answer as PromiseRejectedResult).reason as NodeJS.ErrnoException)
    throw failures.find(({ code }) => unanswered.has(code ?? '')) ?? failures[0]!
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', cancel)
  }
}

/** Runs one lookup at a time; the next one waits for the previous even if its caller no longer waits. */
function oneAtATime(system: (hostname: string) => Promise<readonly string[]>): ResolveName {
  let turn: Promise<unknown> = Promise.resolve()
  return (hostname, signal) => {
    const answer = turn.then(() => {
      signal.throwIfAborted()
      return system(hostname)
    })
    turn = answer.catch(() => {})
    return answer
  }
}

/** Whether a line of the hosts file (`address name alias # comment`) has this name. */
function isHost(hostname: string, hosts: string): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '')
  return hosts.split('\n').some((line) =>
    line
      .replace(/#.*/, '')
      .trim()
      .split(/\s+/)
      .slice(1)
      .some((known) => known.toLowerCase() === name),
  )
}
