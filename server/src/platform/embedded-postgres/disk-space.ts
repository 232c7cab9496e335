import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { diskAlarms_percent } from '#contract/core/limits.ts'
import { startPeriodic } from '../periodic.ts'

/** Folders of the embedded database that may be on separate disks. */
export const disks = { data: 'postgres', wal: join('postgres', 'pg_wal') } as const
export type DiskName = keyof typeof disks

/** Size and free space of a disk for an ordinary account. */
export interface DiskSpace {
  disk: DiskName
  size_bytes: number
  free_bytes: number
}

/** Reads the space of the disks with data and write-ahead log of the embedded database; empty without that database. */
export async function readDiskSpace(data_dir: string): Promise<DiskSpace[]> {
  const found = await Promise.all(
    (Object.keys(disks) as DiskName[]).map(async (disk) => {
      const space = await statfs(join(data_dir, disks[disk])).catch(() => undefined)
      // Blocks that are reserved for root do not count, as in `df`.
      const usable = space && space.blocks - space.bfree + space.bavail
      return space && usable ? [{ disk, size_bytes: usable * space.bsize, free_bytes: space.bavail * space.bsize }] : []
    }),
  )
  return found.flat()
}

/** The part of a logger that is used. */
export interface DiskLog {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

const pollInterval_ms = 10_000
type Level = 'info' | keyof typeof diskAlarms_percent

/**
 * Logs when a disk of the embedded database is too full, and when it has room again. The warning comes early, because
 * PostgreSQL stops when its disk is full. Returns a function that ends the watch.
 */
export function watchDisks(look: () => Promise<DiskSpace[]>, log: DiskLog, every_ms = pollInterval_ms): () => void {
  const levels = new Map<DiskName, Level>()
  const check = async (): Promise<void> => {
    for (const space of await look()) {
      const used_percent = usedPercent(space)
      const level = levelOf(used_percent)
      if ((levels.get(space.disk) ?? 'info') === level) continue
      levels.set(space.disk, level)
      log[level]({ ...space, used_percent }, messages[level])
    }
  }
  const job = startPeriodic(check, {
    every_ms,
    first_ms: 0,
    onError: (error) => log.warn({ err: error }, 'free disk space could not be read; retrying'),
  })
  return () => void job.stop()
}

const messages: Readonly<Record<Level, string>> = {
  info: 'the disk of the database has room again',
  warn: 'the disk of the database is filling up; free space, or keep less (CADRE_TASK_RETENTION_DAYS, CADRE_LOG_RETENTION_DAYS)',
  error: 'the disk of the database is almost full; PostgreSQL will refuse writes and then stop until space is freed',
}

function levelOf(used_percent: number): Level {
  if (used_percent >= diskAlarms_percent.error) return 'error'
  return used_percent >= diskAlarms_percent.warn ? 'warn' : 'info'
}

function usedPercent({ size_bytes, free_bytes }: DiskSpace): number {
  return Math.round((1 - free_bytes / size_bytes) * 1000) / 10
}
