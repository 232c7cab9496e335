import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { cadreScript } from '../../e2e/process.ts'
import { shareTestService } from '../../server/test/shared-service.ts'

const root = new URL('../..', import.meta.url)
/** The commands in a page. */
function examplesOf(path: string): string[] {
  const page = readFileSync(new URL(path, root), 'utf8')
  return [...page.matchAll(/```sh\n(.*?)```/gs)].map(([, text = '']) => text)
}

/** Runs the commands in sequence, like a reader who copies them. */
async function follow(t: TestContext, path: string): Promise<string> {
  const service = await shareTestService()
  const home = await mkdtemp(join(tmpdir(), 'cadre-cli-guide-'))
  t.after(async () => {
    await service.stop()
    await rm(home, { recursive: true })
  })
  const cadre = `cadre() { "${process.execPath}" "${cadreScript}" "$@"; }`
  const line = ['set -eo pipefail', cadre, ...examplesOf(path)].join('\n')
  const env = { PATH: process.env.PATH, HOME: home, URL: service.url, KEY: service.owner.api_key }
  const { stdout } = await promisify(execFile)('bash', ['-c', line], { cwd: home, env })
  return stdout
}

it('the commands in the guide to the command line work', async (t) => {
  const stdout = await follow(t, 'docs/guides/command-line.md')
  assert.match(stdout, /^Hello, agent$/m)
  assert.match(stdout, /^echo$/m)
  assert.match(stdout, /^{.*"number":"4711".*}\n8$/m, 'data alone')
  assert.match(stdout, /Agent deleted/)
})

it('the commands in the page for agents work', async (t) => {
  const stdout = await follow(t, 'cli/AGENTS.md')
  assert.match(stdout, /^completed\nWhich orders are late\?$/m)
  assert.match(stdout, /^{"late":2}$/m)
  assert.equal(JSON.parse(stdout.trim().split('\n').at(-1)!).type, 'task.completed')
})
