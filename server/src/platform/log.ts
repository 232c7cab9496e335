import { pino, type Logger } from 'pino'

/** What must never be read in a log, wherever it stands in an entry (decision D105); it never reaches beyond its text. */
export const secretText = /cadre_[0-9a-f]{32}|Bearer [^\s"\\]+|\bsk-[A-Za-z0-9_-]{8,}|\bwhsec_[A-Za-z0-9+/_-]{8,}=*/g

/**
 * A logger of JSON lines on standard error, so that standard output stays the operator's. Members that hold
 * credentials are left out, and whatever looks like one is replaced in every line (decision D105).
 */
export function makeLog(level: string): Logger {
  const destination = pino.destination({ fd: 2, sync: true })
  return pino(
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
        censor: '[redacted]',
      },
    },
    { write: (line: string) => void destination.write(line.replaceAll(secretText, '[redacted]')) },
  )
}

/** An error without what libraries hang on it: `pg` puts the whole connection there. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { name, message, stack, cause } = error
  const code = 'code' in error ? error.code : undefined
  return {
    type: name,
    message,
    ...(code === undefined ? {} : { code }),
    stack,
    ...(cause === undefined ? {} : { cause: describeError(cause) }),
  }
}
