import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { APIConnectionError } from '#sdk/errors.ts'
import { UsageError } from '../failure.ts'
import { plain } from '../output/plain.ts'

/**
 * Writes a response of any size as it arrives: to standard output, or to a file that gets its name once it is complete. For a
 * terminal, control characters are replaced.
 * Throws `APIConnectionError` if the response is cut off.
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

/** Replaces control characters, for a terminal. */
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
    throw new APIConnectionError('The response was cut off before its end, so it is incomplete.', { cause })
  }
}

function isOfFile(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'path' in error
}
