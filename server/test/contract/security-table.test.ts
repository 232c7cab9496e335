import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'

const root = join(import.meta.dirname, '../../..')
const page = await readFile(join(root, 'SECURITY.md'), 'utf8')
const rows = [...page.matchAll(/^\| (.+?) +\| `([^`]+[.]test[.]ts)`: (.+?) +\|$/gm)].map(([, attack, file, name]) => ({
  attack: attack!,
  file: file!,
  name: name!,
}))

describe('the table of attacks', () => {
  it('the table of attacks has rows', () => {
    assert.ok(rows.length >= 25, `${rows.length}`)
  })

  for (const { attack, file, name } of rows)
    it(`the table of attacks names an existing test: ${attack}`, async () => {
      const tests = (await readFile(join(root, file), 'utf8')).split('\n')
      const named = tests.filter((line) => /^ *(it|test)\(|^ *[`'"]/.test(line) && line.includes(name))
      assert.ok(named.length > 0, `${file} has no test "${name}"`)
    })
})
