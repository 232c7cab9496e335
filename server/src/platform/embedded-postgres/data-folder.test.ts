import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, describe, it } from 'node:test'
import { DataFolderError, openDataFolder } from './data-folder.ts'

const base = await mkdtemp(join(tmpdir(), 'cadre-data-'))
const children: ChildProcess[] = []
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')))
after(() => rm(base, { recursive: true, force: true }))

/** Starts another process; resolves once that has locked the folder. */
async function holder(path: string): Promise<ChildProcess> {
  const module = new URL('./data-folder.ts', import.meta.url).href
  const code = `import { openDataFolder } from ${JSON.stringify(module)}
    await openDataFolder(${JSON.stringify(path)}); console.log('held'); setInterval(() => {}, 60_000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  await once(child.stdout, 'data')
  return child
}

async function modeOf(path: string): Promise<number> {
  return (await stat(path)).mode & 0o777
}

describe('a data folder', () => {
  it('a data folder is made with its parents, and only its owner can enter', async () => {
    const folder = await openDataFolder(join(base, 'a', 'b'))
    assert.equal(await modeOf(folder.path), 0o700)
    await folder.close()
  })

  it('files of the data folder are readable only by its owner, also those that an earlier version made readable by all', async () => {
    const path = join(base, 'files')
    const first = await openDataFolder(path)
    const files = ['service.lock', 'service.json']
    for (const file of files) assert.equal(await modeOf(join(path, file)), 0o600, file)
    await first.close()
    await chmod(join(path, 'service.lock'), 0o644)
    const second = await openDataFolder(path)
    assert.equal(await modeOf(join(path, 'service.lock')), 0o600)
    await assert.rejects(openDataFolder(path), /is in use/)
    await second.close()
  })

  it('an existing folder is closed to others if it is empty or of Cadre, and else keeps its mode', async () => {
    const [empty, foreign] = [join(base, 'empty'), join(base, 'foreign')]
    await mkdir(empty)
    await mkdir(foreign)
    await writeFile(join(foreign, 'notes'), '')
    await Promise.all([chmod(empty, 0o755), chmod(foreign, 0o755)])
    for (const [path, mode] of [
      [empty, 0o710],
      [foreign, 0o755],
    ] as const) {
      const folder = await openDataFolder(path)
      assert.equal(await modeOf(path), mode)
      await folder.close()
    }
  })

  it('a second process gets an error with the process id of the first', async () => {
    const path = join(base, 'held')
    const child = await holder(path)
    await assert.rejects(openDataFolder(path), (error) => {
      assert.ok(error instanceof DataFolderError)
      assert.match(error.message, new RegExp(`is in use by process ${child.pid}, which started at 20`))
      return true
    })
  })

  it('the data folder of a killed process is free at once, even if the process id was reused', async () => {
    const path = join(base, 'killed')
    const child = await holder(path)
    child.kill('SIGKILL')
    await once(child, 'exit')
    await writeFile(join(path, 'service.json'), JSON.stringify({ pid: process.ppid, host: 'x', started_at: 'y' }))
    await (await openDataFolder(path)).close()
  })

  it('a data folder is free after close, and the same process cannot open it twice', async () => {
    const path = join(base, 'twice')
    const folder = await openDataFolder(path)
    await assert.rejects(openDataFolder(path), DataFolderError)
    await folder.close()
    await (await openDataFolder(path)).close()
  })

  it('processes may share a data folder without a database', async () => {
    const path = join(base, 'shared')
    await holder(path)
    const folder = await openDataFolder(path, { exclusive: false })
    assert.equal((await folder.secretKey()).length, 44)
    await folder.close()
  })

  it('several processes that make the secret key at the same time get the same one', async () => {
    const path = join(base, 'key')
    const folders = await Promise.all([1, 2, 3, 4].map(() => openDataFolder(path, { exclusive: false })))
    const keys = await Promise.all(folders.map((folder) => folder.secretKey()))
    assert.equal(new Set(keys).size, 1)
    assert.equal(Buffer.from(keys[0] ?? '', 'base64').length, 32)
    assert.equal(await modeOf(join(path, 'secret.key')), 0o600)
    assert.equal(await folders[0]?.secretKey(), keys[0])
  })

  it('a damaged secret key is never replaced', async () => {
    const path = join(base, 'damaged')
    const folder = await openDataFolder(path)
    await writeFile(join(path, 'secret.key'), 'short\n')
    await assert.rejects(folder.secretKey(), /secret\.key has fewer than 32 characters, .* Restore it from a backup/)
    assert.equal(await readFile(join(path, 'secret.key'), 'utf8'), 'short\n')
    await folder.close()
  })

  it('the file of credentials is readable only by its owner', async () => {
    const folder = await openDataFolder(join(base, 'credentials'))
    const file = await folder.writeCredentials({ api_key: 'cadre_x' })
    assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), { api_key: 'cadre_x' })
    assert.equal(await modeOf(file), 0o600)
    await folder.close()
  })

  it('a data folder that cannot be used gets an error of one line', async () => {
    await writeFile(join(base, 'file'), '')
    await assert.rejects(
      openDataFolder(join(base, 'file', 'x')),
      /^DataFolderError: The data folder .*file\/x cannot be used \((ENOTDIR|EEXIST)\)/,
    )
    await assert.rejects(openDataFolder(join(base, 'file')), DataFolderError)
  })
})
