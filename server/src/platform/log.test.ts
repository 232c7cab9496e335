import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it } from 'node:test'

/** What a process logs by `makeLog`, line by line. */
function logged(...entries: object[]): string[] {
  const program = `
    import { makeLog } from ${JSON.stringify(new URL('log.ts', import.meta.url).href)}
    const log = makeLog('info')
    for (const entry of ${JSON.stringify(entries)}) log.info(entry, 'said')`
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' })
  return stderr.split('\n').filter(Boolean)
}

describe('a line of the log', () => {
  it('is one JSON object with all its members, and without what looks like a credential (decision D105)', () => {
    const key = `cadre_${'0123456789abcdef'.repeat(2)}`
    const [line = '', ...others] = logged({
      refused: 'Authorization: Bearer canary',
      broken: 'Bearer canary\nx',
      key,
      provider: 'sk-canary-canary',
      last: 'still here',
    })
    assert.deepEqual(others, [])
    const { refused, broken, key: shown, provider, last, msg } = JSON.parse(line)
    assert.deepEqual(
      [refused, broken, shown, provider, last, msg],
      ['Authorization: [redacted]', '[redacted]\nx', '[redacted]', '[redacted]', 'still here', 'said'],
    )
  })
})
