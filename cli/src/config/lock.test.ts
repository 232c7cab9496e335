import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, utimesSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { locked } from './lock.ts'

let folder: string
before(async () => void (folder = await mkdtemp(join(tmpdir(), 'cadre-lock-'))))
after(() => rm(folder, { recursive: true }))

test('only one of many processes runs under a lock at a time', { timeout: 120_000 }, async () => {
  const [path, counter] = [join(folder, 'many.lock'), join(folder, 'counter')]
  await writeFile(counter, '0')
  // Reads and writes in two steps, so counts would be lost without the lock.
  const program = `
    import { readFileSync, writeFileSync } from 'node:fs'
    import { setTimeout } from 'node:timers/promises'
    import { locked } from ${JSON.stringify(join(import.meta.dirname, 'lock.ts'))}
    for (let i = 0; i < 10; i++) await locked(${JSON.stringify(path)}, async () => {
      const count = Number(readFileSync(${JSON.stringify(counter)}, 'utf8'))
      await setTimeout(1)
      writeFileSync(${JSON.stringify(counter)}, String(count + 1))
    })`
  const children = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  )
  const codes = await Promise.all(children.map(async (child) => (await once(child, 'exit'))[0] as number))
  assert.deepEqual(codes, [0, 0, 0, 0])
  assert.equal(await readFile(counter, 'utf8'), '40')
  assert.ok(!existsSync(path))
})

test('a lock whose process has died, or that is too old, is taken over', { timeout: 60_000 }, async () => {
  const path = join(folder, 'stale.lock')
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  await writeFile(path, JSON.stringify({ pid, host: hostname(), token: 'dead' }))
  assert.equal(await locked(path, async () => 'mine'), 'mine')

  await writeFile(path, JSON.stringify({ pid: process.pid, host: 'another-machine', token: 'old' }))
  utimesSync(path, new Date(), new Date(Date.now() - 120_000))
  assert.equal(await locked(path, async () => 'mine'), 'mine')

  await writeFile(path, '')
  utimesSync(path, new Date(), new Date(Date.now() - 120_000))
  assert.equal(await locked(path, async () => 'mine'), 'mine', 'one that was never written whole')
  assert.ok(!existsSync(path))
})

test('a lock is released after an error', async () => {
  const path = join(folder, 'failure.lock')
  await assert.rejects(
    locked(path, () => Promise.reject(new Error('no'))),
    /no/,
  )
  assert.equal(await locked(path, async () => 'mine'), 'mine')
})
