import { fileBounds } from '#contract/resources/files.ts'
import { Problem } from '#contract/core/problems.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'

/** Where the bytes of a file are stored. */
export type FileStore = 'database' | 's3'

/** A complete file. */
export interface FileRow {
  id: string
  project_id: number
  name: string
  media_type: string
  bytes: number
  sha256: string
  store: FileStore
  task_id: string | null
  created_by: string
  created_at: string
  /** Null while a task names it. */
  expires_at: string | null
}

export const fileColumns = ({ fragment }: Sql): Fragment => fragment`
  f.id, f.project_id, f.name, f.media_type, f.bytes, f.sha256, f.store, f.task_id, f.created_by, f.created_at,
  case when not exists (select from task_file n where n.file_id = f.id)
    then f.created_at + make_interval(days => ${fileBounds.unused_days}) end as expires_at`

/** A file that is being stored. Without a digest it is invisible. */
export interface NewFile {
  id: string
  project_id: number
  name: string
  created_by: string
  store: FileStore
  task_id?: string | null
  call_key?: string | null
}

/** Inserts a file without bytes. False if its call has made one already. */
export async function insertFile(sql: Sql, file: NewFile): Promise<boolean> {
  const { id, project_id, name, created_by, store, task_id = null, call_key = null } = file
  const rows = await sql`
    insert into file (id, project_id, name, media_type, store, task_id, call_key, created_by)
    select ${id}, p.id, ${name}, 'application/octet-stream', ${store}, ${task_id}, ${call_key}, ${created_by}
    from project p where p.id = ${project_id}
    on conflict do nothing returning id`
  return rows.length > 0
}

/**
 * Reserves room for more bytes of a file that is being stored. Runs in a separate transaction, which holds a lock of
 * the project and commits without waiting for the disk: a crash can lose the reservation only together with the bytes.
 * @throws `quota_exceeded` if the project has no room, `file_not_found` if the project or the file was deleted
 *   meanwhile
 */
export async function takeRoom(
  tx: Sql,
  { id, project_id }: Pick<NewFile, 'id' | 'project_id'>,
  bytes: number,
  limit_bytes: number,
): Promise<void> {
  await tx`
    select set_config('synchronous_commit', 'off', true),
      pg_advisory_xact_lock(hashtextextended('files of project ' || ${project_id}::text, 0))`
  const stored = await countFiles(tx, project_id)
  if (stored.bytes + bytes > limit_bytes)
    throw new Problem('quota_exceeded', { limit: limit_bytes, used: stored.bytes, unit: 'bytes' })
  if (stored.count > fileBounds.per_project)
    throw new Problem('quota_exceeded', { limit: fileBounds.per_project, used: stored.count - 1, unit: 'files' })
  const taken = await tx`
    update file set bytes = bytes + ${bytes} where id = ${id} and sha256 is null returning id`
  if (taken.length === 0) throw new Problem('file_not_found', { resource_type: 'file', resource_id: id })
}

/** Number and bytes of a project's files, including those that are being received. */
export async function countFiles(sql: Sql, project_id: number): Promise<{ count: number; bytes: number }> {
  const [stored] = await sql<{ count: number; bytes: number }>`
    select count(*) as count, coalesce(sum(bytes), 0)::bigint as bytes from file where project_id = ${project_id}`
  return stored!
}

export async function insertPiece(sql: Sql, file_id: string, index: number, bytes: Buffer): Promise<void> {
  await sql`insert into file_piece (file_id, index, bytes) values (${file_id}, ${index}, ${bytes})`
}

/** A piece of a file; undefined beyond its end, or if the file was deleted. */
export async function findPiece(sql: Sql, file_id: string, index: number): Promise<Buffer | undefined> {
  const [row] = await sql<{ bytes: Buffer }>`
    select bytes from file_piece where file_id = ${file_id} and index = ${index}`
  return row?.bytes
}

/** What is known about a file once all of it is stored. */
export interface FileFacts {
  name: string
  media_type: string
  bytes: number
  sha256: string
}

/**
 * Makes a stored file visible.
 * @throws `file_not_found` if the file was deleted with its project
 */
export async function completeFile(
  sql: Sql,
  id: string,
  { name, media_type, bytes, sha256 }: FileFacts,
  made: { task_id?: string; is_artifact?: boolean } = {},
): Promise<FileRow> {
  const { task_id = null, is_artifact = false } = made
  const [row] = await sql.run<FileRow>(sql.fragment`
    update file f set name = ${name}, media_type = ${media_type}, bytes = ${bytes}, sha256 = ${sha256}, task_id = coalesce(f.task_id, ${task_id}), is_artifact = ${is_artifact}
    where f.id = ${id} and f.sha256 is null returning ${fileColumns(sql)}`)
  if (!row) throw new Problem('file_not_found', { resource_type: 'file', resource_id: id })
  return row
}

/** The existing files of a project among these ids. With `lock`, none is deleted before the transaction ends. */
export async function findFiles(
  sql: Sql,
  project_id: number,
  ids: readonly string[],
  { lock = false } = {},
): Promise<Map<string, FileRow>> {
  if (ids.length === 0) return new Map()
  const rows = await sql.run<FileRow>(sql.fragment`
    select ${fileColumns(sql)} from file f
    where f.id = any(${[...ids]}) and f.project_id = ${project_id} and f.sha256 is not null
    ${lock ? sql.fragment`order by f.id for key share of f` : sql.fragment``}`)
  return new Map(rows.map((row) => [row.id, row]))
}

/** The complete file that a call has made; undefined if there is none. */
export async function findOfCall(sql: Sql, call_key: string): Promise<FileRow | undefined> {
  const [row] = await sql.run<FileRow>(sql.fragment`
    select ${fileColumns(sql)} from file f where f.call_key = ${call_key} and f.sha256 is not null`)
  return row
}

/** A file of a task with the same bytes and the same name; undefined if there is none. */
export async function findOfTask(
  sql: Sql,
  task_id: string,
  { sha256, name }: Pick<FileFacts, 'sha256' | 'name'>,
): Promise<{ id: string } | undefined> {
  const [row] = await sql<{ id: string }>`
    select id from file where task_id = ${task_id} and sha256 = ${sha256} and name = ${name} order by id limit 1`
  return row
}

/** Deletes the incomplete file of an interrupted call. */
export async function deleteBegunByCall(sql: Sql, call_key: string): Promise<void> {
  await sql`delete from file where call_key = ${call_key} and sha256 is null`
}

/** Deletes a file if it is incomplete. */
export async function deleteBegun(sql: Sql, id: string): Promise<void> {
  await sql`delete from file where id = ${id} and sha256 is null`
}

/** Records the files that a task names; they stay as long as one of their tasks does. Deleted files are skipped. */
export async function nameFiles(
  tx: Sql,
  { task_id, project_id }: { task_id: string; project_id: number },
  file_ids: readonly string[],
): Promise<void> {
  if (file_ids.length === 0) return
  await tx`
    with named as (
      update file set named_at = now()
      where id in (select id from file where id = any(${[...file_ids]}) and project_id = ${project_id} and sha256 is not null order by id for update)
      returning id
    )
    insert into task_file (task_id, file_id) select ${task_id}, id from named on conflict do nothing`
}

/** Records that a retry names the same files as the task that it retries. */
export async function nameFilesOf(tx: Sql, task_id: string, of_task_id: string): Promise<void> {
  await tx`
    insert into task_file (task_id, file_id) select ${task_id}, file_id from task_file where task_id = ${of_task_id}
    on conflict do nothing`
}
