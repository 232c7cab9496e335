import { isImageType, isTextType } from '#contract/resources/files.ts'
import { findFiles, type FileRow } from '../files/file-rows.ts'
import { readWhole, type Files } from '../files/file-store.ts'
import { type LoadedFile, type Model, ModelError, type ModelMessage } from '../models/model.ts'
import type { Sql } from '../../platform/postgres/database.ts'

/**
 * Maximum bytes of all files of one call. Providers accept no more, and a process holds them in memory while it sends
 * them.
 */
export const callFilesMax = 32 * 1_048_576

/** Where files are read from. */
export interface FileSource {
  sql: Sql
  files: Files
}

/** A part that names a file, and its place among the messages. */
interface Named {
  type: 'image' | 'file'
  file_id: string
  /** For people: which part of which message of the user, both counted from 1. */
  place: string
  /**
   * Whether the part may be left out if it cannot be sent: a tool made the file, or the model has answered since, so
   * that it was sent already.
   */
  mayLack: boolean
}

/**
 * Reads the files that messages name, in the form that the model takes: pictures and documents as bytes, text with its
 * file name. A part that was sent before and cannot be sent any more is replaced by a note.
 * @throws ModelError `file_missing` or `unsupported_input` for a part that was not sent yet
 */
export async function loadFiles(
  messages: readonly ModelMessage[],
  project_id: number,
  { sql, files }: FileSource,
  { model, name }: { model: Model; name: string },
): Promise<Map<string, LoadedFile>> {
  const named = namedIn(messages)
  if (named.length === 0) return new Map()
  const rows = await findFiles(
    sql,
    project_id,
    named.map(({ file_id }) => file_id),
  )
  const loaded = new Map<string, LoadedFile>()
  let left = callFilesMax
  // Newest first: if not all fit, the oldest are left out.
  for (const part of named.toReversed()) {
    if (loaded.has(part.file_id)) continue
    const row = rows.get(part.file_id)
    const refusal = refusalOf(part, row, model, name, left)
    if (refusal && !part.mayLack) throw refusal
    if (refusal || !row) {
      loaded.set(part.file_id, {
        kind: 'text',
        text: `[${part.type} ${part.file_id} is not shown: ${refusal?.message}]`,
      })
      continue
    }
    left -= row.bytes
    loaded.set(part.file_id, await load(files, row, part))
  }
  return loaded
}

function namedIn(messages: readonly ModelMessage[]): Named[] {
  const answered = messages.findLastIndex(({ role }) => role === 'assistant')
  let said = 0
  return messages.flatMap(({ role, parts = [] }, at): Named[] => {
    if (role === 'user') said += 1
    return parts.flatMap((part, i): Named[] => {
      if (part.type === 'text') return []
      const { type, file_id, of_tool = false } = part
      return [{ type, file_id, place: `part ${i + 1} of message ${said}`, mayLack: of_tool || at < answered }]
    })
  })
}

function refusalOf(
  { type, file_id, place }: Named,
  row: FileRow | undefined,
  model: Model,
  name: string,
  left: number,
): ModelError | undefined {
  const fail = (code: 'unsupported_input' | 'file_missing', message: string): ModelError =>
    new ModelError(code, message, { retryable: false })
  if (!row) return fail('file_missing', `The file ${file_id} (${place}) was deleted.`)
  const what = `The ${type} ${file_id} (${place}, ${row.name}, ${row.media_type})`
  if (row.bytes > left)
    return fail(
      'unsupported_input',
      `${what} is too much for one call of ${name}: its files have ${callFilesMax} bytes at most.`,
    )
  const isImage = isImageType(row.media_type)
  const isTaken = type === 'image' ? isImage && takes(model, row) : isTextType(row.media_type) || takes(model, row)
  return isTaken ? undefined : fail('unsupported_input', `${what} is not taken by the model ${name}.`)
}

/** A model without a declaration takes pictures: the built-in ones mention them in their answer. */
function takes(model: Model, { media_type }: FileRow): boolean {
  return model.takes?.(media_type) ?? isImageType(media_type)
}

async function load(files: Files, row: FileRow, { type }: Named): Promise<LoadedFile> {
  const data = await readWhole(files, row)
  if (type === 'file' && isTextType(row.media_type))
    return { kind: 'text', text: `File ${row.name}:\n${data.toString()}` }
  return { kind: 'data', media_type: row.media_type, name: row.name, data }
}
