import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { APIConnectionError } from '#sdk/errors.ts'
import { UsageError } from '../failure.ts'
import { plain } from '../output/plain.ts'

/**
 * Writes an answer as it comes, however large it is: to standard output, or to a file that is there only once it is whole. A
 * terminal gets no control characters of it.
 * Throws `APIConnectionError` where the answer breaks off.
 */
export async function download({ body }: Response, path: string | undefined, signal: AbortSignal): Promise<void> {
  if (body === null) return
  const source = Readable.fromWeb(body).on('error', () => {})
  if (path === undefined) {
    const steps = process.stdout.isTTY ? [source, harmless()] : [source]
    return copy([...steps, process.stdout], { end: false, signal })
  }
  const part = `${path}.${process.pid}.part`
  try {
    await copy([source, createWriteStream(part, { flags: 'wx', mode: 0o600 })], { signal })
    await rename(part, path)
  } catch (error) {
    await rm(part, { force: true })
    if (isOfFile(error)) throw new UsageError(`${path} cannot be written: ${error.message}`)
    throw error
  }
}

/** For a terminal: text without what it would obey. */
function harmless(): Transform {
  const decoder = new TextDecoder()
  return new Transform({
    transform: (bytes: Buffer, _, done) => done(null, plain(decoder.decode(bytes, { stream: true }))),
    flush: (done) => done(null, plain(decoder.decode())),
  })
}

async function copy(
  streams: readonly (Readable | NodeJS.ReadWriteStream | NodeJS.WritableStream)[],
  options: { end?: boolean; signal: AbortSignal },
): Promise<void> {
  try {
    await pipeline(streams, options)
  } catch (cause) {
    if (options.signal.aborted || isOfFile(cause)) throw cause
    throw new APIConnectionError('The answer broke off before its end, so it is not complete.', { cause })
  }
}

function isOfFile(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'path' in error
}
