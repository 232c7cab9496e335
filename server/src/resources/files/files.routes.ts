import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { notFound, Problem } from '#contract/core/problems.ts'
import * as operations from '#contract/resources/files.ts'
import type { Context } from '../../context.ts'
import type { FileRow } from '../../engine/files/file-rows.ts'
import type { BegunFile } from '../../engine/files/file-store.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { Answer, handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { contentAnswer } from './file-content.ts'
import { deleteFile, listFiles, requireFile } from './files.queries.ts'
import { receiveUpload } from './upload.ts'

/** How long a download waits for a reader that does not read. */
const stall_ms = 30_000

/** Routes of files. */
export function fileRoutes(app: FastifyInstance, http: HttpContext, { files }: Context): void {
  const uploads = new WeakMap<FastifyRequest, BegunFile>()

  handle(app, http, operations.createFile, {
    load: loadProject,
    receive: async (loading, validated) => {
      const { request, principal } = loading
      const { id: project_id } = await loadProject(loading)
      const { query } = validated()
      loading.waits()
      const whose = { project_id, created_by: principal.user_id }
      const file = await receiveUpload(files, request, whose, query.name)
      uploads.set(request, file)
      const digest = Buffer.from(`${file.sha256} ${file.name}`)
      return { digest, release: async () => void (uploads.has(request) && (await files.discard(file))) }
    },
    run: async ({ sql, request, loaded: { id: project_id }, actor }) => {
      const upload = uploads.get(request)!
      return sql.begin(async (tx) => {
        const made = view(await files.complete(tx, upload))
        await recordAudit(tx, actor, { action: 'file.created', target: made.id, project_id, after: made })
        tx.afterCommit(() => uploads.delete(request))
        return made
      })
    },
  })

  handle(app, http, operations.listFiles, {
    load: loadProject,
    run: async ({ sql, loaded: { id: project_id }, query: { limit, offset, task_id, search } }) => {
      const { files: found, total } = await listFiles(sql, { project_id, task_id, search, limit, offset })
      return { files: found.map(view), pagination: offsetPagination(total, limit, offset, found.length) }
    },
  })

  handle(app, http, operations.getFile, { load: loadFile, run: async ({ loaded }) => view(loaded) })

  handle(app, http, operations.getFileContent, {
    load: loadFile,
    run: async ({ loaded, request, header }) => {
      const { range, 'if-range': ifRange, 'if-none-match': ifNoneMatch } = request.headers
      const asked = { range, 'if-range': ifRange as string | undefined, 'if-none-match': ifNoneMatch }
      const { status, start, end, headers } = contentAnswer(loaded, asked)
      for (const [name, value] of Object.entries(headers)) header(name, value)
      return new Answer(status, { start, end })
    },
    finish: async ({ loaded, request }, { status, body }, reply) => {
      const { start, end } = body as { start: number; end: number }
      // With a stream the framework keeps the Content-Length header, although no body is sent.
      if (request.method === 'HEAD') return new Answer(status, Readable.from([]))
      if (status === 304) return new Answer(status, undefined)
      request.is_long = true
      const bytes = watched(files.read(loaded, start, end), () => void reply.raw.destroy())
      return new Answer(status, Readable.from(bytes, { objectMode: false, highWaterMark: 1 }))
    },
  })

  handle(app, http, operations.deleteFile, {
    load: loadFile,
    run: ({ sql, loaded, query: { force = false }, actor }) =>
      sql.begin(async (tx) => {
        const { id, project_id } = loaded
        const outcome = await deleteFile(tx, loaded, { force })
        if (outcome === 'gone') throw notFound('file_not_found', 'file', id)
        if (outcome === 'in_use') throw new Problem('file_in_use', { resource_type: 'file', resource_id: id })
        await recordAudit(tx, actor, {
          action: 'file.deleted',
          target: id,
          project_id,
          before: view(loaded),
          detail: { force },
        })
        return { message: 'File deleted', file_id: id }
      }),
  })
}

/** Passes pieces on, and calls `onStall` if the reader takes none for too long. */
async function* watched(pieces: AsyncIterable<Buffer>, onStall: () => void): AsyncGenerator<Buffer> {
  for await (const piece of pieces) {
    const stalled = setTimeout(onStall, stall_ms).unref()
    try {
      yield piece
    } finally {
      clearTimeout(stalled)
    }
  }
}

function view({ id, name, media_type, bytes, sha256, created_at, created_by, task_id, expires_at }: FileRow) {
  return { id, name, media_type, bytes, sha256, created_at, created_by, task_id, expires_at }
}

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}

async function loadFile(loading: Loading): Promise<FileRow> {
  const { id: project_id } = await loadProject(loading)
  return requireFile(loading.sql, { id: loading.params.file_id!, project_id })
}
