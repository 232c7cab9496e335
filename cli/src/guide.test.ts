import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { startTestService } from '../../server/test/harness.ts'

const root = new URL('../..', import.meta.url)
const guide = readFileSync(new URL('docs/guides/command-line.md', root), 'utf8')
const examples = [...guide.matchAll(/```sh\n(.*?)```/gs)].map(([, text = '']) => text)

it('the guide of the command line does what it says', async (t) => {
  const service = await startTestService()
  const home = await mkdtemp(join(tmpdir(), 'cadre-cli-guide-'))
  t.after(async () => {
    await service.stop()
    await rm(home, { recursive: true })
  })
  const line = [
    'set -eo pipefail',
    `cadre() { "${process.execPath}" "${root.pathname}cadre.mjs" "$@"; }`,
    ...examples,
  ].join('\n')
  const env = { PATH: process.env.PATH, HOME: home, URL: service.url, KEY: service.owner.api_key }
  const { stdout } = await promisify(execFile)('bash', ['-c', line], { cwd: home, env })
  assert.match(stdout, /^Hello, agent$/m)
  assert.match(stdout, /^echo$/m)
  assert.match(stdout, /Agent deleted/)
})
