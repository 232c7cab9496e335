import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { diskAlarms_percent } from '#contract/core/limits.ts'
import { startPeriodic } from '../periodic.ts'

/** What the embedded database keeps, by the disk that it may have for itself. */
export const disks = { data: 'postgres', wal: join('postgres', 'pg_wal') } as const
export type DiskName = keyof typeof disks

/** A disk, as an ordinary account may use it. */
export interface DiskSpace {
  disk: DiskName
  size_bytes: number
  free_bytes: number
}

/** How full the disks are on which the embedded database of a data folder keeps its data and its log. None where there is no such database. */
export async function readDiskSpace(data_dir: string): Promise<DiskSpace[]> {
  const found = await Promise.all(
    (Object.keys(disks) as DiskName[]).map(async (disk) => {
      const space = await statfs(join(data_dir, disks[disk])).catch(() => undefined)
      // What is kept back for root is no part of it, as `df` counts.
      const usable = space && space.blocks - space.bfree + space.bavail
      return space && usable ? [{ disk, size_bytes: usable * space.bsize, free_bytes: space.bavail * space.bsize }] : []
    }),
  )
  return found.flat()
}

/** What of a logger is used. */
export interface DiskLog {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

const pollInterval_ms = 10_000
type Level = 'info' | keyof typeof diskAlarms_percent

/**
 * Logs when a disk of the embedded database becomes too full, and when it has room again. Returns a function that stops
 * it. A full disk ends PostgreSQL, so the warning comes before.
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
    onError: (error) => log.warn({ err: error }, 'the space of a disk could not be read; it will be read again'),
  })
  return () => void job.stop()
}

const messages: Readonly<Record<Level, string>> = {
  info: 'the disk of the database has room again',
  warn: 'the disk of the database is filling: give it room, or keep less (CADRE_TASK_RETENTION_DAYS, CADRE_LOG_RETENTION_DAYS)',
  error: 'the disk of the database is almost full: PostgreSQL will refuse writes, and then end, until it has room',
}

function levelOf(used_percent: number): Level {
  if (used_percent >= diskAlarms_percent.error) return 'error'
  return used_percent >= diskAlarms_percent.warn ? 'warn' : 'info'
}

function usedPercent({ size_bytes, free_bytes }: DiskSpace): number {
  return Math.round((1 - free_bytes / size_bytes) * 1000) / 10
}
