import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import type { EgressAnswer } from '../../../platform/egress/safe-fetch.ts'
import type { NewToolFile, ToolAnswer } from '../tool.ts'

/** Bytes of an answer after its compression was undone: the bound of the answer itself (decision D104). */
const decodedMax_bytes = 5 * 1024 * 1024

const decoders: Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
}

/**
 * What a model reads of the answer to a tool's own request: its body. A status of 400 and more is a failure, and stands
 * before the body, which alone may not tell that it is one.
 */
export async function toolAnswer(answer: EgressAnswer): Promise<ToolAnswer> {
  const { status, network } = answer
  const { text, files } = await readBody(answer)
  const isFailure = status >= 400
  const content = text === '' ? `HTTP ${status} without content` : isFailure ? `HTTP ${status}: ${text}` : text
  if (!isFailure) return { content, network, files }
  return { content, network, files, error: { code: `http_${status}`, message: `The server answered HTTP ${status}.` } }
}

/** The body of an answer as a model can read it: text as text; everything else described in a sentence, and as a file. */
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
      text: describe(type, body, `compressed as ${encoding.slice(0, 40)}, and could not be unpacked`),
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
    // Not what it says it is, or longer than its bound.
    return undefined
  }
}

/** The text of bytes in the character set that they say; undefined where they are no text. */
function textOf(bytes: Buffer, type: string): string | undefined {
  const charset = /;\s*charset="?([\w-]{1,40})"?/i.exec(type)?.[1] ?? 'utf-8'
  try {
    const text = new TextDecoder(charset, { fatal: true }).decode(bytes)
    return looksLikeText(text) ? text : undefined
  } catch {
    return undefined
  }
}

/** Text has no control characters beside those that lay it out. */
function looksLikeText(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- exactly those are looked for
  return !/[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/.test(text.slice(0, 10_000)) && !text.includes('\u0000')
}

function describe(type: string, bytes: Buffer, more?: string): string {
  const kind = /^[\w.+-]+\/[\w.+-]+/.exec(type)?.[0].slice(0, 100) ?? 'unknown type'
  return `[${bytes.length} bytes of ${kind} that are no text${more === undefined ? '' : `: ${more}`}]`
}
