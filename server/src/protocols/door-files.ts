import type { FastifyRequest } from 'fastify'
import { Problem } from '#contract/core/problems.ts'
import type { Context } from '../context.ts'
import { findFiles, findOfTask, nameFiles } from '../engine/files/file-rows.ts'
import type { BegunFile, Files } from '../engine/files/file-store.ts'
import { receiveUrls, type NamedUrl, type ReceivedUrls } from '../engine/files/input-files.ts'
import type { Sql } from '../platform/postgres/database.ts'

/** A file of the project that a request refers to, with the parameter that contains its id. */
export interface NamedFile {
  file_id: string
  param: string
}

/** Files of a request: those that it contains as data or URLs, and those that it refers to by id. */
export interface AskedFiles {
  /** Parts of messages have the URL of such a file in place of a file id. */
  urls: NamedUrl[]
  named: NamedFile[]
}

/** Files that came with a request. They are stored, and become visible when a transaction that takes them commits. */
export class ReceivedFiles {
  readonly byUrl: ReceivedUrls
  readonly #kept = new Set<string>()

  constructor(byUrl: ReceivedUrls = new Map()) {
    this.byUrl = byUrl
  }

  /** Takes the files of these URLs for a task; effective when `tx` commits. */
  take(tx: Sql, urls: readonly NamedUrl[]): BegunFile[] {
    const taken = new Set(urls.flatMap(({ url }) => this.byUrl.get(url) ?? []))
    if (taken.size > 0)
      tx.afterCommit(() => {
        for (const { id } of taken) this.#kept.add(id)
      })
    return [...taken]
  }

  /** Files that no transaction has taken. */
  get left(): BegunFile[] {
    return [...this.byUrl.values()].filter(({ id }) => !this.#kept.has(id))
  }
}

/** Stores the files of requests before their transactions. */
export function makeDoorFiles({ files, egress }: Pick<Context, 'files' | 'egress'>) {
  const all = new WeakMap<FastifyRequest, ReceivedFiles>()
  return {
    /**
     * Stores the files of a request. `release` removes those that no transaction has taken. Throws the problems of
     * `receiveUrls`.
     */
    async receive(
      request: FastifyRequest,
      whose: { project_id: number; created_by: string },
      urls: readonly NamedUrl[],
    ): Promise<{ release(): Promise<void> } | undefined> {
      if (urls.length === 0) return undefined
      const received = new ReceivedFiles(await receiveUrls({ files, egress }, whose, urls))
      all.set(request, received)
      return {
        async release() {
          for (const file of received.left) await files.discard(file)
        },
      }
    },
    /** The files that came with a request. */
    of: (request: FastifyRequest): ReceivedFiles => all.get(request) ?? new ReceivedFiles(),
  }
}

/**
 * Stores the files of a request for a running task; returns them by URL. Clients resend the same bytes with the whole
 * conversation, so bytes that the task already has as a file are not stored again.
 */
export async function keepOfTask(
  { sql, files }: { sql: Sql; files: Files },
  { task_id, project_id }: { task_id: string; project_id: number },
  received: ReceivedFiles,
): Promise<Map<string, { id: string }>> {
  const kept = new Map<string, { id: string }>()
  for (const url of received.byUrl.keys()) {
    const file = await sql.begin(async (tx) => {
      const known = await findOfTask(tx, task_id, received.byUrl.get(url)!)
      if (known) return known
      const [started] = received.take(tx, [{ url, field: '' }])
      const made = await files.complete(tx, started!, { task_id })
      await nameFiles(tx, { task_id, project_id }, [made.id])
      return made
    })
    kept.set(url, file)
  }
  return kept
}

export type DoorFiles = ReturnType<typeof makeDoorFiles>

/** Throws 404 with the parameter if the project does not have a file. */
export async function requireNamedFiles(sql: Sql, project_id: number, named: readonly NamedFile[]): Promise<void> {
  const found = await findFiles(
    sql,
    project_id,
    named.map(({ file_id }) => file_id),
  )
  const missing = named.find(({ file_id }) => !found.has(file_id))
  if (!missing) return
  const details = { resource_type: 'file', resource_id: missing.file_id.slice(0, 100) }
  throw new Problem('file_not_found', details, { members: { param: missing.param } })
}

/** A data URL of base64 bytes. The type of the file is detected from the bytes, not from `media_type`. */
export function dataUrl(base64: string, media_type = 'application/octet-stream'): string {
  return base64.startsWith('data:') ? base64 : `data:${media_type};base64,${base64}`
}
