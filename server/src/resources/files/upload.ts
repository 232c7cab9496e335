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

/** Maximum size of a form without its file, in bytes. */
const formBytes = 65_536
/** Maximum number of parts of a form. */
const partsMax = 10

type Whose = Pick<FileOrigin, 'project_id' | 'created_by'>

/**
 * Streams the uploaded file to the store: the body, or the part `file` of a form. The body is read when an upload
 * slot is free. Throws 400 for a missing file or an incomplete body, `file_too_large`, `quota_exceeded`, and 503 if
 * too many uploads wait; then nothing is stored.
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
    // A large file on a slow connection may take longer than other bodies.
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

/** The bytes of a body; throws 400 if it ends early. */
async function* bytesOf(body: Readable): AsyncGenerator<Buffer> {
  try {
    // A refused body is read to its end and dropped, so that the connection can be reused.
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

/** Parses a form and streams its part `file` to the store. `name` may come before or after it. */
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
    // The reader of a part gets its error too. A part without a reader would end the process.
    part.on('error', () => {})
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
    // A form may fail more than once, and an error without a listener would end the process.
    form.on('error', (cause: unknown) => reject(cutOff(cause)))
    body.once('aborted', () => reject(cutOff(new Error('aborted'))))
    body.on('error', (cause) => reject(cutOff(cause)))
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
    // Ends the upload in progress; what was stored of it is removed.
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
