import { pino, type Logger } from 'pino'

/** What must never be read in a log, wherever it stands in an entry (decision D105); it never reaches beyond its text. */
export const secretText = /cadre_[0-9a-f]{32}|Bearer [^\s"\\]+|\bsk-[A-Za-z0-9_-]{8,}|\bwhsec_[A-Za-z0-9+/_-]{8,}=*/g

/** Shorter ones would be found in words that are no secrets. */
const secretLengthMin = 8

/**
 * A logger of JSON lines on standard error, so that standard output stays the operator's. Members that hold
 * credentials are left out, and in every line whatever looks like one is replaced, and so is each of `secrets`, those that
 * the service was configured with (decision D105).
 */
export function makeLog(level: string, secrets: readonly string[] = []): Logger {
  const destination = pino.destination({ fd: 2, sync: true })
  const all = new Set(secrets)
  const given = all.size
  let known = knownText(secrets)
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

/** Secrets that are kept out of a log beyond those that it was made with; the oldest are forgotten first. */
const addedMax = 10_000

const additions = new WeakMap<Logger, (secrets: readonly string[]) => void>()

/** Keeps further secrets out of all that a logger of `makeLog` writes from now on: those that are read while the service runs. */
export function keepOut(log: Logger, secrets: readonly string[]): void {
  additions.get(log)?.(secrets)
}

/** What processes write to one pipe at once stays whole up to here (`PIPE_BUF` of Linux). */
const wholeWrite_bytes = 4096

/** The lines of one turn of the event loop are written together, because each write is a call of the system; so are the last ones. */
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

/** Matches each secret as it stands in a line of JSON, the longest first; undefined where there are none. */
function knownText(secrets: readonly string[]): RegExp | undefined {
  const texts = secrets
    .filter(({ length }) => length >= secretLengthMin)
    .map((text) => JSON.stringify(text).slice(1, -1))
  if (texts.length === 0) return undefined
  const longestFirst = [...new Set(texts)].toSorted((a, b) => b.length - a.length)
  return new RegExp(longestFirst.map((text) => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g')
}

/** Causes below this are not logged: they may go in a circle. */
const causesMax = 5
/** A host with several addresses fails once for each. */
const errorsMax = 3

/**
 * An error without what libraries hang on it: `pg` puts the whole connection there, and OAuth libraries what a provider
 * answered, as a cause that is no error.
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
