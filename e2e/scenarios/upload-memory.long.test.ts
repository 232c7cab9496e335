import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { after, before, it } from 'node:test'
import type pg from 'pg'
import { fileBounds } from '#contract/resources/files.ts'
import { maker } from '../../server/test/contract/full-installation.ts'
import { sender } from '../../server/test/harness.ts'
import { startProcess, type RunningService } from '../process.ts'
import { api_key, makeInstallations, type Installations } from './installations.ts'

let installations: Installations
let client: pg.Client
let service: RunningService
let path: string

before(async () => {
  installations = await makeInstallations()
  const external = await installations.external()
  client = external.client
  service = await startProcess({ ...external.env, PORT: '0', CADRE_METRICS_PORT: 'off' })
  const project = await maker(sender(service.url, api_key))('/api/v1/projects', { name: 'large' })
  path = `/api/v1/projects/${project.id}/files`
})
after(async () => {
  await service.end()
  await installations.close()
})

const mib = 1_048_576
const boundMiB = 8
/** Uploads of each kind at a time: half of the most bytes, half of one more. */
const rounds = 8
const bytes = Buffer.alloc(fileBounds.bytes + 1, 'cadre')

/** Uploads of each kind: as a body of known length, in chunks, and as the part of a form. */
async function uploadAll(length: number): Promise<number[]> {
  const part = bytes.subarray(0, length)
  const form = new FormData()
  form.append('file', new Blob([part]))
  const bodies: RequestInit[] = [{ body: part }, { body: new Blob([part]).stream(), duplex: 'half' }, { body: form }]
  return Promise.all(
    bodies.map(async (init) => {
      const response = await fetch(new URL(path, service.url), {
        method: 'POST',
        headers: { 'x-api-key': api_key },
        ...init,
      })
      await response.arrayBuffer()
      return response.status
    }),
  )
}

/** A figure of the kernel about the service's process, in MiB. */
async function memory(name: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile(`/proc/${service.process.pid}/status`, 'utf8')
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)![1]) / 1024
}

it(
  `an upload of the maximum size, and one that is larger by a byte, take at most ${boundMiB} MiB of memory each`,
  { skip: process.platform !== 'linux' && 'the kernel tells the memory of a process on Linux alone' },
  async () => {
    // What a process takes once, for its first uploads, is not taken by each.
    for (let warm = 0; warm < 3; warm++) assert.deepEqual(await uploadAll(mib * 8), [201, 201, 201])
    const before = await memory('VmRSS')
    // The peak counts from here on.
    await writeFile(`/proc/${service.process.pid}/clear_refs`, '5')
    const statuses = await Promise.all(
      Array.from({ length: rounds }, (_, round) => uploadAll(fileBounds.bytes + (round % 2))),
    )
    assert.deepEqual(
      statuses,
      statuses.map((_, round) => Array.from({ length: 3 }, () => (round % 2 === 0 ? 201 : 413))),
    )
    const each = ((await memory('VmHWM')) - before) / statuses.flat().length
    assert.ok(each <= boundMiB, `${each.toFixed(2)} MiB each`)
    const { rows } = await client.query(
      'select count(*)::int as files, (select count(*)::int from file_piece) as pieces from file',
    )
    const pieces = (3 * 3 * 8 * mib + (rounds / 2) * 3 * fileBounds.bytes) / mib
    assert.deepEqual(rows, [{ files: 9 + (rounds / 2) * 3, pieces }])
  },
)
