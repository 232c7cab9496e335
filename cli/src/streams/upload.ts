import { openAsBlob } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { UsageError } from '../failure.ts'

/** A local file, which is read while it is sent, and its name. Throws `UsageError` if it cannot be read. */
export async function fileToSend(path: string): Promise<{ content: Blob; name: string }> {
  try {
    if (!(await stat(path)).isFile()) throw new UsageError(`${path} is not a file.`)
    return { content: await openAsBlob(path), name: basename(path) }
  } catch (error) {
    if (error instanceof UsageError || !(error instanceof Error)) throw error
    throw new UsageError(`${path} cannot be read: ${error.message}`)
  }
}
