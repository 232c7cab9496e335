import { fileBounds } from '#contract/resources/files.ts'
import { invalid, notFound, Problem } from '#contract/core/problems.ts'
import {
  taskBounds,
  type FilePart,
  type ImageUrlPart,
  type MessageContent,
  type MessagePart,
  type TaskInput,
} from '#contract/tasks/tasks.ts'
import { Readable } from 'node:stream'
import { EgressError, EgressRefused, type Egress } from '../../platform/egress/safe-fetch.ts'
import type { EgressStream } from '../../platform/egress/egress-stream.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { findFiles } from './file-rows.ts'
import type { BegunFile, FileOrigin, Files } from './file-store.ts'

/** Timeout for fetching a URL. */
const fetch_ms = 20_000
/** Maximum number of redirects to a picture. */
const redirectsMax = 3
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** The messages of an input; none for a text or an object. */
function messagesOf(input: TaskInput): { role: string; content: MessageContent }[] {
  return Array.isArray(input) ? input : []
}

/** The ids of the files that an input names, each once. */
export function filesIn(input: TaskInput): string[] {
  const ids = messagesOf(input).flatMap(({ content }) => filesOf(content))
  return [...new Set(ids)]
}

/** The ids of the files that a message names. */
export function filesOf(content: MessageContent): string[] {
  if (typeof content === 'string') return []
  return content.flatMap((part) => fileIdOf(part) ?? [])
}

/** The file that a part names. A member that is null is absent (decision D17). */
function fileIdOf(part: MessagePart): string | undefined {
  return (part as Partial<FilePart>).file_id ?? undefined
}

/**
 * Checks the files of an input.
 * @throws `file_not_found` for a file that the project does not have, `validation_error` for files in messages that are
 *   not the user's, because no model takes them there
 */
export async function requireInputFiles(sql: Sql, project_id: number, input: TaskInput | undefined): Promise<void> {
  const messages = input === undefined ? [] : messagesOf(input)
  const at = messages.findIndex(({ role, content }) => role !== 'user' && hasFiles(content))
  if (at >= 0) {
    const field = `input[${at}].content`
    throw invalid({ field, message: 'must be text in messages that are not from the user', code: 'invalid_format' })
  }
  await requireFiles(
    sql,
    project_id,
    messages.flatMap(({ content }) => filesOf(content)),
  )
}

/**
 * Checks an input that is stored for later tasks. Its pictures must be files already, so it must not have URLs.
 * @throws like `requireInputFiles`, and `validation_error` for a URL
 */
export async function requireKeptFiles(sql: Sql, project_id: number, input: TaskInput | undefined): Promise<void> {
  const [url] = input === undefined ? [] : urlsIn(input)
  if (url) throw refused(url.field, 'must be uploaded first, and named by its file_id')
  await requireInputFiles(sql, project_id, input)
}

/**
 * Checks that a project has these files.
 * @throws `file_not_found`
 */
export async function requireFiles(sql: Sql, project_id: number, ids: readonly string[]): Promise<void> {
  const found = await findFiles(sql, project_id, ids)
  const missing = ids.find((id) => !found.has(id))
  if (missing !== undefined) throw notFound('file_not_found', 'file', missing.slice(0, 100))
}

function hasFiles(content: MessageContent): boolean {
  return typeof content !== 'string' && content.some(({ type }) => type !== 'text')
}

/** Files that were received from the URLs of an input, by URL; not visible yet. */
export type ReceivedUrls = ReadonlyMap<string, BegunFile>
/** The files of URLs. */
type FileIds = ReadonlyMap<string, { id: string }>

/**
 * Stores pictures and files that are given as data or by address, each URL once. Addresses are fetched through the
 * egress guard.
 * @throws `validation_error` for a URL that cannot be fetched; nothing is stored then
 */
export async function receiveUrls(
  { files, egress }: { files: Files; egress: Egress },
  whose: Pick<FileOrigin, 'project_id' | 'created_by'>,
  urls: readonly NamedUrl[],
): Promise<ReceivedUrls> {
  const received = new Map<string, BegunFile>()
  try {
    for (const { url, field, name, type = 'image' } of urls) {
      if (received.has(url)) continue
      if (received.size >= taskBounds.input_urls)
        throw invalid({
          field: field.split(/[.[]/, 1)[0]!,
          message: `must have at most ${taskBounds.input_urls} pictures and files that are given by URLs`,
          code: 'too_long',
          max: taskBounds.input_urls,
        })
      const { source, declared } = url.startsWith('data:')
        ? dataOf(url, field)
        : await fetched(egress, url, field, type)
      received.set(url, await files.receive({ ...whose, name: name ?? nameOf(url, declared), declared }, source))
    }
    return received
  } catch (error) {
    await Promise.all([...received.values()].map((file) => files.discard(file)))
    throw error
  }
}

/** An input with its URLs replaced by the received files. */
export function withFiles(input: TaskInput, received: FileIds): TaskInput {
  if (!Array.isArray(input)) return input
  return input.map((message) => {
    if (typeof message.content === 'string') return message
    return { ...message, content: contentWithFiles(message.content, received) }
  })
}

/** The content of a message with its URLs replaced by the received files. */
export function contentWithFiles(content: MessageContent, received: FileIds): MessageContent {
  if (typeof content === 'string') return content
  return content.map((part) => {
    if (part.type === 'text') return part
    const file_id = fileIdOf(part)
    const file = received.get(file_id ?? (part as ImageUrlPart).url)
    const id = file?.id ?? file_id
    return id === undefined ? part : { type: part.type, file_id: id }
  })
}

/** A URL of a picture or file, and its field. */
export interface NamedUrl {
  url: string
  field: string
  /** A picture by default. */
  type?: 'image' | 'file'
  /** The name of the file; by default taken from the URL. */
  name?: string | undefined
}

export function urlsIn(input: TaskInput): NamedUrl[] {
  return messagesOf(input).flatMap(({ content }, at) => urlsOf(content, `input[${at}].content`))
}

/** The URLs in the content of a message. */
export function urlsOf(content: MessageContent, field = 'content'): NamedUrl[] {
  if (typeof content === 'string') return []
  return content.flatMap((part, i) => {
    const { url } = part as Partial<ImageUrlPart>
    return !url || fileIdOf(part) !== undefined ? [] : [{ url, field: `${field}[${i}].url` }]
  })
}

function refused(field: string, message: string, cause?: unknown): Problem {
  const issue = { field, message, code: 'invalid_format' } as const
  return new Problem('validation_error', [issue], { message: `The request is not valid: ${field} ${message}.`, cause })
}

/** The bytes of a file as they arrive, and the media type that their source declares. */
interface Picture {
  source: AsyncIterable<Buffer>
  declared: string | undefined
}

/** The bytes of a `data:` URL. */
function dataOf(url: string, field: string): Picture {
  const comma = url.indexOf(',')
  const head = comma < 0 ? '' : url.slice('data:'.length, comma)
  const encoded = url.slice(comma + 1).replaceAll(/[\r\n]/g, '')
  if (!/;base64$/i.test(head) || encoded === '' || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(encoded))
    throw refused(field, 'must have its bytes in base64')
  return { source: Readable.from([Buffer.from(encoded, 'base64')]), declared: head.split(';', 1)[0] }
}

/** Fetches a URL. The body is read while it is stored, so it needs no more memory than an upload. */
async function fetched(egress: Egress, url: string, field: string, type: 'image' | 'file'): Promise<Picture> {
  const failed = (error: unknown): never => {
    if (error instanceof EgressRefused || error instanceof EgressError)
      throw refused(field, `could not be fetched: ${error.message}`, error)
    throw error
  }
  const { status, headers, body } = await follow(egress, url, type === 'image' ? 'image/*' : '*/*').catch(failed)
  if (status !== 200) {
    await body.cancel().catch(() => {})
    throw refused(field, `could not be fetched: the server answered HTTP ${status}`)
  }
  const read = async function* (): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of body) yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    } catch (error) {
      failed(error)
    }
  }
  return { source: read(), declared: headers['content-type'] }
}

/** Requests a URL; the egress guard checks each redirect like the first address. */
async function follow(egress: Egress, url: string, accept: string): Promise<EgressStream> {
  for (let at = url, redirects = 0; ; redirects += 1) {
    const answer = await egress.open(at, {
      purpose: 'file',
      method: 'GET',
      headers: { accept },
      timeout_ms: fetch_ms,
      bytesMax: fileBounds.bytes,
    })
    const next = answer.headers['location'] && URL.parse(answer.headers['location'], at)
    if (redirects === redirectsMax || !redirectStatuses.has(answer.status) || !next) return answer
    await answer.body.cancel().catch(() => {})
    at = next.href
  }
}

/** The name of a picture or file: from its URL, else by its media type. */
function nameOf(url: string, declared: string | undefined): string {
  const last = url.startsWith('data:') ? undefined : URL.parse(url)?.pathname.split('/').at(-1)
  if (last) return safelyDecoded(last)
  if (declared !== undefined && !declared.startsWith('image/')) return 'file'
  return `image.${/^image\/([a-z]+)/.exec(declared ?? '')?.[1] ?? 'png'}`
}

function safelyDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
