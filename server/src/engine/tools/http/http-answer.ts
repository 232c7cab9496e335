import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import type { EgressAnswer } from '../../../platform/egress/safe-fetch.ts'
import type { NewToolFile, ToolAnswer } from '../tool.ts'

/** Maximum bytes of a decompressed body: the same as of the response itself (decision D104). */
const decodedMax_bytes = 5 * 1024 * 1024

const decoders: Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
}

/**
 * The result of a tool's request for the model: the body. A status of 400 or more is an error, and is written before
 * the body, which alone may not show the error.
 */
export async function toolAnswer(answer: EgressAnswer): Promise<ToolAnswer> {
  const { status, network } = answer
  const { text, files } = await readBody(answer)
  const isFailure = status >= 400
  const content = text === '' ? `HTTP ${status} without content` : isFailure ? `HTTP ${status}: ${text}` : text
  if (!isFailure) return { content, network, files }
  return { content, network, files, error: { code: `http_${status}`, message: `The server answered HTTP ${status}.` } }
}

/** The body in a form for the model: text unchanged; anything else as a description and a file. */
export async function readBody({
  headers,
  body,
  url,
}: Pick<EgressAnswer, 'headers' | 'body' | 'url'>): Promise<{ text: string; files: NewToolFile[] }> {
  const type = headers['content-type'] ?? ''
  const encoding = (headers['content-encoding'] ?? 'identity').trim().toLowerCase()
  const bytes = encoding === 'identity' || encoding === '' ? body : await decode(encoding, body)
  if (!bytes)
    return {
      text: describe(type, body, `compressed as ${encoding.slice(0, 40)}, and could not be decompressed`),
      files: [],
    }
  const text = textOf(bytes, type)
  if (text !== undefined) return { text, files: [] }
  const name = URL.parse(url)?.pathname.split('/').at(-1) ?? ''
  return { text: describe(type, bytes), files: [{ name: safelyDecoded(name), declared: type, content: bytes }] }
}

function safelyDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

async function decode(encoding: string, body: Buffer): Promise<Buffer | undefined> {
  const decoder = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined
  try {
    return await decoder?.(body, { maxOutputLength: decodedMax_bytes })
  } catch {
    // The body is not in the declared encoding, or exceeds the maximum.
    return undefined
  }
}

/** Decodes a text in its declared character set; undefined if it is not text. */
function textOf(bytes: Buffer, type: string): string | undefined {
  const charset = /;\s*charset="?([\w-]{1,40})"?/i.exec(type)?.[1] ?? 'utf-8'
  try {
    const text = new TextDecoder(charset, { fatal: true }).decode(bytes)
    return looksLikeText(text) ? text : undefined
  } catch {
    return undefined
  }
}

/** Text has no control characters except for those of layout. */
function looksLikeText(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- exactly those are looked for
  return !/[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/.test(text.slice(0, 10_000)) && !text.includes('\u0000')
}

function describe(type: string, bytes: Buffer, more?: string): string {
  const kind = /^[\w.+-]+\/[\w.+-]+/.exec(type)?.[0].slice(0, 100) ?? 'unknown type'
  return `[${bytes.length} bytes of ${kind} that are not text${more === undefined ? '' : `: ${more}`}]`
}
