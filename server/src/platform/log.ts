import { pino, type Logger } from 'pino'
import { isTransient } from './postgres/database.ts'

/** Credentials that must not appear anywhere in a log entry (decision D105). A match never extends beyond a JSON string. */
export const secretText = /cadre_[0-9a-f]{32}|Bearer [^\s"\\]+|\bsk-[A-Za-z0-9_-]{8,}|\bwhsec_[A-Za-z0-9+/_-]{8,}=*/g

/** Shorter secrets would match parts of ordinary words. */
const secretLengthMin = 8

/**
 * Makes a logger that writes JSON lines to standard error; standard output is for results of commands. It redacts known
 * members with credentials, text that looks like a credential, and each of `secrets`, those of the configuration
 * (decision D105). Of warnings with the same failure it writes one a minute, with the number of those withheld before it as
 * `repeated`.
 */
export function makeLog(level: string, secrets: readonly string[] = []): Logger {
  const destination = pino.destination({ fd: 2, sync: true })
  const all = new Set(secrets)
  const given = all.size
  let known = knownText(secrets)
  const count = countRepeated()
  const clean = (line: string): string => {
    const text = line.replaceAll(secretText, redacted)
    return known ? text.replaceAll(known, redacted) : text
  }
  const log = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
      hooks: {
        logMethod(args, method, of) {
          const [entry, message] = args as [unknown, unknown]
          const repeated = of === warn && isFailure(entry) ? count(entry, String(message)) : 0
          if (repeated === undefined) return
          method.apply(this, repeated > 0 ? ([{ ...(entry as object), repeated }, message] as typeof args) : args)
        },
      },
      redact: {
        paths: [
          'headers.authorization',
          'headers.cookie',
          'headers["x-api-key"]',
          'headers["set-cookie"]',
          'password',
          'client_secret',
          '*.password',
          '*.client_secret',
        ],
        censor: redacted,
      },
    },
    gathered((lines) => void destination.write(clean(lines))),
  )
  additions.set(log, (more) => {
    const added = more.filter((text) => !all.has(text))
    if (added.length === 0) return
    for (const text of added) all.add(text)
    if (all.size > given + addedMax) all.delete([...all][given]!)
    known = knownText([...all])
  })
  return log
}

/** Maximum number of secrets that `keepOut` adds; the oldest are dropped first. */
const addedMax = 10_000

const additions = new WeakMap<Logger, (secrets: readonly string[]) => void>()

/** Redacts further secrets, which are read while the service runs, from what a logger of `makeLog` writes from now on. */
export function keepOut(log: Logger, secrets: readonly string[]): void {
  additions.get(log)?.(secrets)
}

const warn = 40
/**
 * While the database cannot be reached, every background job of a process fails several times a second: repetitions are
 * withheld for this long.
 */
const repetition_ms = 60_000

/** The members of a warning of a failure: its error, or the reason that another thread gave. */
type Failure = Record<string, unknown> & ({ err: unknown } | { reason: unknown })

function isFailure(entry: unknown): entry is Failure {
  return typeof entry === 'object' && entry !== null && ('err' in entry || 'reason' in entry)
}

/**
 * Counts warnings with the same message, members and cause; failures of the database count as one cause. Returns how many
 * were withheld since the last one, or undefined to withhold this one too.
 */
function countRepeated(): (entry: Failure, message: string) => number | undefined {
  const seen = new Map<string, { at: number; withheld: number }>()
  return ({ err, reason, ...members }, message) => {
    const key = JSON.stringify([message, causeOf(err ?? reason), members])
    const now = performance.now()
    const last = seen.get(key)
    if (last && now - last.at < repetition_ms) {
      last.withheld++
      return undefined
    }
    for (const [other, { at }] of seen) if (now - at >= 2 * repetition_ms) seen.delete(other)
    seen.set(key, { at: now, withheld: 0 })
    return last?.withheld ?? 0
  }
}

function causeOf(error: unknown): unknown {
  if (isTransient(error)) return 'database'
  return error instanceof Error ? [error.name, error.message] : error
}

/** Up to this size, concurrent writes to a pipe are atomic (`PIPE_BUF` of Linux). */
const wholeWrite_bytes = 4096

/** Writes the lines of one turn of the event loop in one system call; at exit, what is left. */
function gathered(write: (lines: string) => void): { write: (line: string) => void } {
  let lines = ''
  let bytes = 0
  const flush = (): void => {
    if (lines === '') return
    const all = lines
    lines = ''
    bytes = 0
    write(all)
  }
  process.on('exit', flush)
  return {
    write(line) {
      const more = Buffer.byteLength(line)
      if (bytes + more > wholeWrite_bytes) flush()
      if (lines === '') setImmediate(flush)
      lines += line
      bytes += more
    },
  }
}

const redacted = '[redacted]'

/** Matches each secret as JSON escapes it, the longest first; undefined without secrets. */
function knownText(secrets: readonly string[]): RegExp | undefined {
  const texts = secrets
    .filter(({ length }) => length >= secretLengthMin)
    .map((text) => JSON.stringify(text).slice(1, -1))
  if (texts.length === 0) return undefined
  const longestFirst = [...new Set(texts)].toSorted((a, b) => b.length - a.length)
  return new RegExp(longestFirst.map((text) => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g')
}

/** Deeper causes are not logged, because causes may be circular. */
const causesMax = 5
/** Maximum number of errors of an `AggregateError`; a host with several addresses fails once for each. */
const errorsMax = 3

/**
 * Describes an error without the properties that libraries add: `pg` adds the whole connection, and OAuth libraries the
 * provider's response as a cause.
 */
function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : { type: typeName(error) }
  const { name, message, stack, cause } = error
  const code = 'code' in error ? error.code : undefined
  const isDeep = depth >= causesMax
  return {
    type: name,
    message,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    stack,
    ...(error instanceof AggregateError && !isDeep
      ? { errors: error.errors.slice(0, errorsMax).map((one: unknown) => describeError(one, depth + 1)) }
      : {}),
    ...(cause === undefined || isDeep ? {} : { cause: describeError(cause, depth + 1) }),
  }
}

function typeName(value: unknown): string {
  return typeof value === 'object' && value !== null ? (value.constructor?.name ?? 'object') : typeof value
}
