import { fileBounds } from '#contract/resources/files.ts'
import { notFound } from '#contract/core/problems.ts'
import { fileColumns, findFiles, type FileRow } from '../../engine/files/file-rows.ts'
import { isId } from '../../platform/ids.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { likePattern } from '../projects/projects.queries.ts'

/** Key of a file within its project. */
export interface FileKey {
  id: string
  project_id: number
}

/** A file of a project; throws 404 if it does not exist. */
export async function requireFile(sql: Sql, { id, project_id }: FileKey): Promise<FileRow> {
  const row = isId('file', id) ? (await findFiles(sql, project_id, [id])).get(id) : undefined
  if (!row) throw notFound('file_not_found', 'file', id.slice(0, 100))
  return row
}

export interface FileFilter {
  project_id: number
  task_id?: string | undefined
  search?: string | undefined
  limit: number
  offset: number
}

/** A page of files, newest first, and their total number. Counting is cheap because of `fileBounds.per_project`. */
export async function listFiles(
  sql: Sql,
  { project_id, task_id, search, limit, offset }: FileFilter,
): Promise<{ files: FileRow[]; total: number }> {
  const { fragment } = sql
  const conditions = [fragment`f.project_id = ${project_id} and f.sha256 is not null`]
  if (task_id !== undefined) conditions.push(fragment`f.task_id = ${task_id}`)
  if (search !== undefined) conditions.push(fragment`f.name ilike ${likePattern(search)}`)
  const where = conditions.reduce((all, one) => fragment`${all} and ${one}`)
  const [count] = await sql.run<{ total: number }>(fragment`select count(*) as total from file f where ${where}`)
  const files = await sql.run<FileRow>(fragment`
    select ${fileColumns(sql)} from file f where ${where} order by f.id desc limit ${limit} offset ${offset}`)
  return { files, total: count?.total ?? 0 }
}

/**
 * Deletes a file. Returns `in_use` if a task that has not ended uses it, unless forced, and `gone` if it does not
 * exist. Requires a transaction: the file is locked first, so that a concurrent task is either seen or does not find
 * the file.
 */
export async function deleteFile(
  tx: Sql,
  { id, project_id }: FileKey,
  { force }: { force: boolean },
): Promise<'deleted' | 'in_use' | 'gone'> {
  const [locked] = await tx`
    select 1 from file where id = ${id} and project_id = ${project_id} and sha256 is not null for update`
  if (!locked) return 'gone'
  const deleted = await tx`
    delete from file where id = ${id} and (${force} or not exists (
      select from task_file n join task t on t.id = n.task_id where n.file_id = ${id} and t.finished_at is null))
    returning id`
  return deleted.length > 0 ? 'deleted' : 'in_use'
}

/** Age in hours after which an unfinished upload is removed. */
const begun_hours = 1
/** How many minutes a file outlives its last task. */
const unnamed_minutes = 1
const batch = 100

/**
 * Removes a batch of files: those whose last task was removed, those without a task for 30 days, and unfinished
 * uploads. Files of schedules and test cases stay. Returns whether there may be more.
 */
export async function sweepFiles(sql: Sql): Promise<boolean> {
  const removed = await sql`
    delete from file where id in (
      select f.id from file f
      where (f.sha256 is null and f.created_at < now() - make_interval(hours => ${begun_hours}))
        or (f.sha256 is not null
          and coalesce(f.named_at + make_interval(mins => ${unnamed_minutes}), f.created_at + make_interval(days => ${fileBounds.unused_days})) < now()
          and not exists (select from task_file n where n.file_id = f.id)
          and not exists (select from schedule s where s.project_id = f.project_id and strpos(s.input::text, f.id) > 0)
          and not exists (
            select from test_case c join agent a on a.id = c.agent_id
            where a.project_id = f.project_id and strpos(c.input::text, f.id) > 0))
      order by f.id limit ${batch} for update skip locked
    ) returning id`
  return removed.length === batch
}
