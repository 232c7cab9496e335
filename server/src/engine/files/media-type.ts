import { fileTypeFromBuffer } from 'file-type'
import { isTextType } from '#contract/resources/files.ts'

/** The media type if neither the bytes nor the sender say more. */
const unknown = 'application/octet-stream'

/**
 * The media type of a file, by its bytes: `head` is its beginning, `isText` whether all of it is text in UTF-8. Text
 * formats look alike, so for text the type that the sender `declared` counts, unless the bytes are HTML or SVG.
 */
export async function mediaTypeOf(head: Buffer, isText: boolean, declared: string | undefined): Promise<string> {
  const found = await fileTypeFromBuffer(head).catch(() => undefined)
  if (found && !(isText && isTextType(found.mime))) return found.mime
  if (!isText) return unknown
  const start = head
    .subarray(0, 4096)
    .toString()
    .replace(/^\uFEFF/, '')
    .trimStart()
  if (/^(<!doctype\s+html|<html|<head|<body|<script)/i.test(start)) return 'text/html'
  if (/^(<\?xml[^>]*>\s*)?(<!--[^]*?-->\s*)*(<!doctype\s+svg[^>]*>\s*)?<svg[\s>]/i.test(start)) return 'image/svg+xml'
  const type = declared?.split(';', 1)[0]!.trim().toLowerCase()
  if (type && type.length <= declaredMax && isTextType(type)) return type
  if (/^<\?xml[\s?]/.test(start)) return 'application/xml'
  return isJson(head, start) ? 'application/json' : 'text/plain'
}

/** Of a file that is longer than its head, only the first characters are checked. */
function isJson(head: Buffer, start: string): boolean {
  if (!/^[[{]/.test(start)) return false
  if (head.length >= headBytes) return /^(\{\s*("|\})|\[\s*[[{"\]\d-])/.test(start)
  try {
    JSON.parse(head.toString())
    return true
  } catch {
    return false
  }
}

/** Maximum characters of a declared media type. */
const declaredMax = 100

/** Bytes at the beginning of a file that are examined. */
export const headBytes = 65_536
