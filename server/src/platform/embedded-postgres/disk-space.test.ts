import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { eventually } from '../../../test/harness.ts'
import { type DiskName, readDiskSpace, watchDisks } from './disk-space.ts'

/** Linux always has this disk in memory; a run of all tests may have its temporary folders there. */
const inMemory = '/dev/shm'
const linux = { skip: process.platform === 'linux' ? false : 'needs /dev/shm' }

it(
  'the disks of the embedded database are those of its data and its write-ahead log; without a database there are none',
  linux,
  async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'cadre-disk-'))
    t.after(() => rm(folder, { recursive: true }))
    assert.deepEqual(await readDiskSpace(folder), [])
    await mkdir(join(folder, 'postgres'))
    // The checkout may be in memory too.
    const { dev } = await stat(folder)
    const places = await Promise.all(
      [inMemory, import.meta.dirname, '/'].map(async (path) => ({ path, ...(await stat(path)) })),
    )
    await symlink(places.find((place) => place.dev !== dev)!.path, join(folder, 'postgres', 'pg_wal'))
    const [data, wal, ...more] = await readDiskSpace(folder)
    assert.deepEqual([data!.disk, wal!.disk, more], ['data', 'wal', []])
    for (const { size_bytes, free_bytes } of [data!, wal!]) assert.ok(size_bytes >= free_bytes && free_bytes > 0)
    assert.notEqual(data!.size_bytes, wal!.size_bytes)
  },
)

it('a disk that fills up is logged once at 80 % and at 90 %, and once when it has room again', async () => {
  const said: [level: string, disk: DiskName, used_percent: number][] = []
  const note = (level: string) => (details: object) => {
    const { disk, used_percent } = details as { disk: DiskName; used_percent: number }
    said.push([level, disk, used_percent])
  }
  let used = 0
  let looks = 0
  const look = async () => {
    looks++
    return [
      { disk: 'data', size_bytes: 1000, free_bytes: 1000 - used },
      { disk: 'wal', size_bytes: 1000, free_bytes: 900 },
    ] as const
  }
  const stop = watchDisks(
    async () => [...(await look())],
    { info: note('info'), warn: note('warn'), error: note('error') },
    1,
  )
  for (used of [799, 800, 899, 900, 990, 500]) {
    const before = looks
    await eventually(async () => looks >= before + 3)
  }
  stop()
  assert.deepEqual(said, [
    ['warn', 'data', 80],
    ['error', 'data', 90],
    ['info', 'data', 50],
  ])
})
