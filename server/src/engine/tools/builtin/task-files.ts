import { builtinToolDefinitions, readFileLength_bytes } from '#contract/tools/builtin-tools.ts'
import { isTextType } from '#contract/resources/files.ts'
import { ToolError, type CallFiles, type KnownFile, type Tool } from '../tool.ts'

/** Reads text files of the project, one part at a time. */
export const readFile: Tool = {
  name: 'read_file',
  ...builtinToolDefinitions.read_file,
  async call(args, { files }) {
    const file = await requireCallFile(files, String(args['file_id']))
    if (!isTextType(file.media_type))
      throw new ToolError('not_text', `The file ${file.name} is ${file.media_type}, which is not text.`)
    const start = Math.min(Number(args['offset'] ?? 0), file.bytes)
    const end = Math.min(start + Number(args['length'] ?? readFileLength_bytes.usual), file.bytes)
    // A character that begins before `start` belongs to this part, because the previous part left it out.
    const from = Math.max(0, start - 3)
    const bytes = await files!.read(file, from, end)
    const text = wholeCharacters(bytes, start - from, end === file.bytes)
    // A model that set no length must learn that there is more.
    const isCut = args['length'] === undefined && end < file.bytes
    return { content: isCut ? `${text}\n[bytes ${start} to ${end} of ${file.bytes}]` : text }
  },
}

interface SaveFileArguments {
  name: string
  media_type?: string
  content?: string
  content_base64?: string
}

/** Stores a file as a result of the task. */
export const saveFile: Tool = {
  name: 'save_file',
  ...builtinToolDefinitions.save_file,
  async call(args, { files }) {
    // The arguments were validated against the definition.
    const { name, media_type: declared, content, content_base64 } = args as unknown as SaveFileArguments
    if (!files) throw new ToolError('no_files', 'Files are not available here.')
    if ((content === undefined) === (content_base64 === undefined))
      throw new ToolError('invalid_arguments', 'Set either content or content_base64, and not both.')
    const bytes = content === undefined ? decoded(content_base64 ?? '') : Buffer.from(content)
    const saved = await files.save({ name, declared, content: bytes }, 0, true)
    return { content: JSON.stringify(factsOf(saved)), artifacts: [saved] }
  },
}

/**
 * The file that a call names.
 * @throws ToolError if there is none
 */
export async function requireCallFile(files: CallFiles | undefined, file_id: string): Promise<KnownFile> {
  const file = await files?.find(file_id)
  if (file) return file
  throw new ToolError('file_missing', `There is no file ${file_id.slice(0, 100)}. It was deleted, or the id is wrong.`)
}

/** A file in the form for models and journals. */
export function factsOf({ id, name, media_type, bytes, sha256 }: KnownFile) {
  return { file_id: id, name, media_type, bytes, sha256 }
}

function decoded(text: string): Buffer {
  const compact = text.replaceAll(/\s/g, '')
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(compact))
    throw new ToolError('invalid_arguments', 'content_base64 is not base64.')
  return Buffer.from(compact, 'base64')
}

/**
 * The text from a position on, without a character that is cut off at the end. A character that begins before the
 * position is included.
 */
function wholeCharacters(bytes: Buffer, at: number, isLast: boolean): string {
  let start = at
  while (start > 0 && start < bytes.length && isContinuation(bytes[start]!)) start -= 1
  let end = bytes.length
  if (!isLast) {
    let begin = end - 1
    while (begin > start && isContinuation(bytes[begin]!)) begin -= 1
    if (begin >= start && begin + lengthOf(bytes[begin]!) > end) end = begin
  }
  return bytes.subarray(start, end).toString()
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80
}

/** Length of a character in UTF-8, by its first byte. */
function lengthOf(byte: number): number {
  if (byte < 0xc0) return 1
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
}
