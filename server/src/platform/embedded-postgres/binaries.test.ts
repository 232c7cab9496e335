import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { completeLinks } from './binaries.ts'

const base = await mkdtemp(join(tmpdir(), 'cadre-links-'))
after(() => rm(base, { recursive: true }))

/** A package as npm installs it without install scripts. */
async function packageNamed(name: string, folder: string): Promise<string> {
  const root = join(base, name, 'native')
  await mkdir(join(root, folder), { recursive: true })
  const links = [{ source: `native/lib/libpq.so.5.18`, target: `native/lib/libpq.so.5` }]
  await writeFile(join(root, 'pg-symlinks.json'), JSON.stringify(links))
  return root
}

describe('binaries of the embedded PostgreSQL', () => {
  it('missing library links of the embedded PostgreSQL are made once', async () => {
    const root = await packageNamed('writable', 'lib')
    for (const _ of [1, 2]) assert.equal(await completeLinks(root, join(base, 'unused')), undefined)
    assert.equal(await readlink(join(root, 'lib', 'libpq.so.5')), 'libpq.so.5.18')
    await assert.rejects(readlink(join(base, 'unused', 'libpq.so.5')), { code: 'ENOENT' })
  })

  it('library links are made in another folder if the package is not writable', async () => {
    const root = await packageNamed('unwritable', 'elsewhere')
    const links_dir = join(base, 'links')
    for (const _ of [1, 2]) assert.equal(await completeLinks(root, links_dir), links_dir)
    assert.equal(await readlink(join(links_dir, 'libpq.so.5')), join(root, 'lib', 'libpq.so.5.18'))
  })

  it('no library links are made if the package lists none', async () => {
    assert.equal(await completeLinks(base, join(base, 'unused')), undefined)
  })
})
