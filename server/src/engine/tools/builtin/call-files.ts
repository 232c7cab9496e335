import { isImageType, isTextType } from '#contract/resources/files.ts'
import { Problem } from '#contract/core/problems.ts'
import type { FilePart } from '#contract/tasks/tasks.ts'
import { findFiles } from '../../files/file-rows.ts'
import type { Files } from '../../files/file-store.ts'
import type { Sql } from '../../../platform/postgres/database.ts'
import { answerFilesMax, ToolError, type CallFiles, type KnownFile, type ToolAnswer } from '../tool.ts'

/** The origin of a call; its key is the same in every repetition. */
export interface CallOrigin {
  task_id: string
  project_id: number
  created_by: string
  idempotency_key: string
}

/** The files that one tool call may read and save: see `CallFiles`. */
export function callFiles({ sql, files }: { sql: Sql; files: Files }, origin: CallOrigin): CallFiles {
  const { task_id, project_id, created_by, idempotency_key } = origin
  return {
    find: async (file_id) => (await findFiles(sql, project_id, [file_id])).get(file_id),
    read: async (file, start, end) =>
      Buffer.concat(await Array.fromAsync(files.read({ ...file, project_id }, start, end))),
    async save({ name, declared, content }, place, is_artifact) {
      const call_key = `${idempotency_key}:${place}`
      try {
        return await files.make({ task_id, project_id, created_by, call_key, is_artifact, name, declared, content })
      } catch (error) {
        if (error instanceof Problem && error.status < 500)
          throw new ToolError(error.kind, error.message, { cause: error })
        throw error
      }
    },
  }
}

/** First place of files in an answer; lower ones are for files that the tool itself saves. */
const answerPlace = 1000

/** The stored files of an answer: lines to add to its text, and parts that the model sees. */
export interface KeptFiles {
  notes: string
  parts: FilePart[]
}

/**
 * Stores the parts of an answer that are not text as files of the task. Pictures and documents become parts for the
 * model. The notes name the files, and those that could not be stored.
 */
export async function keepAnswerFiles(answer: ToolAnswer, files: CallFiles | undefined): Promise<KeptFiles> {
  const parts: FilePart[] = []
  const lines: string[] = []
  if (!files) return { notes: '', parts }
  for (const [i, given] of (answer.files ?? []).slice(0, answerFilesMax).entries()) {
    try {
      const file = await files.save(given, answerPlace + i, false)
      lines.push(`[file ${file.id}: ${file.name}, ${file.media_type}, ${file.bytes} bytes]`)
      const part = partOf(file)
      if (part) parts.push(part)
    } catch (error) {
      // The call has taken effect, so the model must read its result even if a file could not be stored.
      const reason = error instanceof ToolError ? error.message : 'it could not be stored'
      lines.push(`[a file of ${given.content.length} bytes was not stored: ${reason}]`)
    }
  }
  return { notes: lines.map((line) => `\n${line}`).join(''), parts }
}

function partOf({ id, media_type }: KnownFile): FilePart | undefined {
  if (isImageType(media_type)) return { type: 'image', file_id: id }
  return media_type === 'application/pdf' || isTextType(media_type) ? { type: 'file', file_id: id } : undefined
}
