import type { Sql } from '../platform/postgres/database.ts'
import { count, megabytes } from './progress.ts'

/**
 * A message about files whose contents are in an object store, so that no archive has them; undefined without such files.
 * Works with any schema.
 */
export async function filesOutside(sql: Sql): Promise<string | undefined> {
  const [table] = await sql<{ is: boolean }>`select to_regclass('file') is not null as is`
  if (!table?.is) return undefined
  const [outside] = await sql<{ files: number; bytes: number }>`
    select count(*) as files, coalesce(sum(bytes), 0)::bigint as bytes from file where store = 's3' and sha256 is not null`
  const { files, bytes } = outside!
  return files === 0
    ? undefined
    : `The contents of ${files === 1 ? '1 file' : `${count(files)} files`} (${megabytes(bytes)}) are in the object store and not in the backup.`
}
