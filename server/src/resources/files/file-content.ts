import { isImageType } from '#contract/resources/files.ts'
import { Problem } from '#contract/core/problems.ts'
import type { FileRow } from '../../engine/files/file-rows.ts'
import { isKnown } from '../../http/etag.ts'

/** The response to a request for a file: all of it, a part, or nothing because the client has it. */
export interface ContentAnswer {
  status: 200 | 206 | 304
  /** First byte; `end` is exclusive. */
  start: number
  end: number
  headers: Record<string, string>
}

/** Request headers that affect the response. */
export interface ContentRequest {
  range?: string | undefined
  'if-range'?: string | undefined
  'if-none-match'?: string | undefined
}

/**
 * Decides the response to a request for a file (RFC 9110, 13 and 14). A single range is served; several ranges or an
 * invalid one get the whole file. Throws `range_not_satisfiable` for a range beyond the end. Browsers show only
 * images, and content of a file may not run or load anything.
 */
export function contentAnswer(file: FileRow, request: ContentRequest): ContentAnswer {
  const { bytes } = file
  const tag = `"${file.sha256}"`
  const always = { etag: tag, 'cache-control': 'private, no-cache' }
  if (isKnown(request['if-none-match'], tag)) return { status: 304, start: 0, end: 0, headers: always }
  const headers = {
    ...always,
    'accept-ranges': 'bytes',
    'content-type': contentType(file.media_type),
    'content-disposition': disposition(file),
    'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
    'cross-origin-resource-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
  }
  const ifRange = request['if-range']
  const range = ifRange === undefined || ifRange === tag ? rangeOf(request.range, bytes) : undefined
  if (!range) return { status: 200, start: 0, end: bytes, headers: { ...headers, 'content-length': String(bytes) } }
  if (range === 'none')
    throw new Problem('range_not_satisfiable', { bytes }, { headers: { 'content-range': `bytes */${bytes}` } })
  const { start, end } = range
  return {
    status: 206,
    start,
    end,
    headers: {
      ...headers,
      'content-length': String(end - start),
      'content-range': `bytes ${start}-${end - 1}/${bytes}`,
    },
  }
}

/** The requested range; undefined to send the whole file, `none` if it is beyond the end. */
function rangeOf(header: string | undefined, bytes: number): { start: number; end: number } | 'none' | undefined {
  const [, first = '', last = ''] = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(header ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first === '') {
    const suffix = Math.min(Number(last), bytes)
    return suffix === 0 ? 'none' : { start: bytes - suffix, end: bytes }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= bytes) return 'none'
  return { start, end: last === '' ? bytes : Math.min(Number(last) + 1, bytes) }
}

/** The media type without parameters of its sender. */
function contentType(media_type: string): string {
  const type = media_type.split(';', 1)[0]!.trim()
  return type.startsWith('text/') ? `${type}; charset=utf-8` : type
}

/** RFC 6266: contains the name twice, because some clients do not support UTF-8. */
function disposition({ media_type, name }: FileRow): string {
  const kind = isImageType(media_type) ? 'inline' : 'attachment'
  const plain = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, '_')
  const encoded = encodeURIComponent(name).replaceAll(
    /['()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `${kind}; filename="${plain}"; filename*=UTF-8''${encoded}`
}
