import type { IncomingMessage } from 'node:http'
import { PassThrough, type Readable } from 'node:stream'
import { Busboy, type BusboyInstance } from '@fastify/busboy'
import type { FastifyRequest } from 'fastify'
import { fileBounds } from '#contract/resources/files.ts'
import { invalid, Problem } from '#contract/core/problems.ts'
import { allowSlowBody, endSlowBody } from '../../http/connection/slow-bodies.ts'
import { TooManyWait } from '../../platform/fair-turns.ts'
import type { ProjectTurns } from '../../engine/files/turns.ts'
import { fileTooLarge, type BegunFile, type FileOrigin, type Files } from '../../engine/files/file-store.ts'

/** Bytes that a form may have beside its file: names and boundaries. */
const formBytes = 65_536
/** Fields and parts of a form at most; one is the file, one its name. */
const partsMax = 10

type Whose = Pick<FileOrigin, 'project_id' | 'created_by'>

/**
 * Stores the file that a request uploads, as it comes: the body itself, or the part `file` of a form. Its body is read once it is
 * its turn. Throws 400 for a body that has none or is cut off, `file_too_large`, `quota_exceeded`, and 503 where too many
 * wait; then nothing of it is left.
 */
export async function receiveUpload(
  files: Files,
  request: FastifyRequest,
  whose: Whose,
  name: string | undefined,
  turns: ProjectTurns = files.uploadTurns,
): Promise<BegunFile> {
  if (request.headers['content-encoding'] !== undefined)
    throw invalid({ field: 'Content-Encoding', message: 'is not supported', code: 'invalid_format' })
  const closed = new AbortController()
  const leave = (): void => closed.abort(cutOff(new Error('disconnected')))
  request.raw.once('close', leave)
  const receive = (): Promise<BegunFile> => {
    // A large file on a slow connection takes longer than any other request may.
    allowSlowBody(request.raw)
    return receiveBody(files, request, whose, name).finally(() => endSlowBody(request.raw))
  }
  try {
    return await turns.run(whose.project_id, receive, closed.signal)
  } catch (error) {
    if (!(error instanceof TooManyWait)) throw error
    throw new Problem('service_unavailable', undefined, { headers: { 'retry-after': '5' }, cause: error })
  } finally {
    request.raw.off('close', leave)
  }
}

async function receiveBody(
  files: Files,
  request: FastifyRequest,
  whose: Whose,
  name: string | undefined,
): Promise<BegunFile> {
  const declared = request.content_type
  const isForm = /^multipart\/form-data[ \t]*(;|$)/i.test(declared ?? '')
  const length = Number(request.headers['content-length'] ?? 0)
  if (length > fileBounds.bytes + (isForm ? formBytes : 0)) throw fileTooLarge()
  if (isForm) return receiveForm(files, request.raw, declared!, whose, name)
  if (length === 0 && request.headers['transfer-encoding'] === undefined) throw missing('body')
  return files.receive({ ...whose, name, declared, bytes: length }, bytesOf(request.raw))
}

/** The bytes of a body; one that ends too early is a fault of its sender. */
async function* bytesOf(body: Readable): AsyncGenerator<Buffer> {
  try {
    // A refused body is read to its end and thrown away, so that the connection can be used again.
    for await (const chunk of body.iterator({ destroyOnReturn: false })) yield chunk as Buffer
  } catch (cause) {
    if (cause instanceof Problem) throw cause
    throw cutOff(cause)
  } finally {
    body.resume()
  }
}

function cutOff(cause: unknown): Problem {
  const issue = { field: 'body', message: 'ended too early', code: 'invalid_format' } as const
  return new Problem('validation_error', [issue], { message: 'The body ended too early.', cause })
}

function missing(field: string): Problem {
  return invalid({ field, message: 'is required', code: 'required' })
}

/** Reads a form whose part `file` is stored as it comes; its `name` may stand before or behind it. */
async function receiveForm(
  files: Files,
  body: IncomingMessage,
  content_type: string,
  whose: Whose,
  name: string | undefined,
): Promise<BegunFile> {
  const form = parserOf(content_type)
  let given: string | undefined
  let stored: Promise<BegunFile> | undefined
  let open: Readable | undefined
  let count = 0
  let excess = 0
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => {})
  form.on('field', (field: string, value: string) => {
    if (field === 'name') given = value
  })
  form.on('file', (field: string, part: Readable, filename: string | undefined, _encoding: string, type: string) => {
    if (field !== 'file') return void part.resume()
    count += 1
    if (count > 1) {
      part.resume()
      return failed.reject(invalid({ field: 'file', message: 'must be one file', code: 'invalid_format' }))
    }
    open = part
    stored = files.receive({ ...whose, name: filename, declared: type }, bytesOf(part))
    stored.catch((error: unknown) => {
      part.resume()
      failed.reject(error)
    })
  })
  for (const event of ['partsLimit', 'filesLimit', 'fieldsLimit'])
    form.on(event as 'partsLimit', () =>
      failed.reject(invalid({ field: 'body', message: `must have at most ${partsMax} parts`, code: 'too_long' })),
    )
  const read = new Promise<void>((resolve, reject) => {
    form.once('finish', resolve)
    form.once('error', (cause: unknown) => reject(cutOff(cause)))
    body.once('aborted', () => reject(cutOff(new Error('aborted'))))
    body.once('error', (cause) => reject(cutOff(cause)))
  })
  const counted = new PassThrough()
  counted.on('data', (chunk: Buffer) => {
    excess += chunk.length
    if (excess > fileBounds.bytes + formBytes) failed.reject(fileTooLarge())
  })
  body.pipe(counted).pipe(form)
  try {
    await Promise.race([read, failed.promise])
    if (!stored) throw missing('file')
    const file = await stored
    return { ...file, name: given ?? name ?? file.name }
  } catch (error) {
    body.unpipe(counted)
    counted.unpipe(form)
    form.destroy()
    body.resume()
    // What is being stored ends with its part, and what is stored by then is removed.
    open?.destroy(error instanceof Error ? error : undefined)
    await stored?.then((file) => files.discard(file)).catch(() => {})
    throw error
  }
}

function parserOf(content_type: string): BusboyInstance {
  try {
    return new Busboy({
      headers: { 'content-type': content_type },
      limits: { files: 2, fields: partsMax, parts: partsMax, fieldSize: 8192, fieldNameSize: 100, headerPairs: 50 },
      isPartAFile: (field, _type, filename) => field === 'file' || filename !== undefined,
    })
  } catch (cause) {
    const issue = { field: 'Content-Type', message: 'must have a boundary', code: 'invalid_format' } as const
    throw new Problem('validation_error', [issue], { message: 'The form has no boundary.', cause })
  }
}
