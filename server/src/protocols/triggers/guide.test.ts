import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { bounds, buckets, retention_days } from '#contract/core/limits.ts'
import { filteredReasons, filterOperators, triggerBounds, triggerSources } from '#contract/doors/trigger-sources.ts'
import { eventually } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { createProject } from '../../../test/fixtures.ts'

const guide = readFileSync(new URL('../../../../docs/guides/triggers.md', import.meta.url), 'utf8')
const examples = [...guide.matchAll(/```sh\n(.*?)```/gs)].map(([, text = '']) => text)
const mark = '<<next>>'

it('the examples of the guide to triggers do what it says', async (t) => {
  const test = await shareTestService()
  t.after(() => test.stop())
  const project = await createProject(test.send, 'guide')
  const agents = `${project.path}/agents`
  const { body: agent } = await test.send('POST', agents, { body: { name: 'echo', config: { model: 'builtin/echo' } } })
  await eventually(async () => (await test.send('GET', `${agents}/${agent.id}`)).body.status === 'running')
  const folder = await mkdtemp(join(tmpdir(), 'cadre-triggers-guide-'))
  t.after(() => rm(folder, { recursive: true }))
  const env = {
    PATH: process.env.PATH,
    CADRE: `${test.url}/api/v1`,
    KEY: test.owner.api_key,
    PROJECT: `proj_${project.id}`,
    AGENT: agent.id as string,
  }
  const script = ['set -eo pipefail', ...examples.flatMap((text) => [text, `printf '%s' '${mark}'`])].join('\n')
  // The second example runs twice, because the sender repeats the delivery.
  const again = script.replace(`printf '%s' '${mark}'\n${examples[2]}`, () =>
    [`printf '%s' '${mark}'`, examples[1], `printf '%s' '${mark}'`, examples[2]].join('\n'),
  )
  const { stdout } = await promisify(execFile)('bash', ['-c', again], { cwd: folder, env })
  const [, first, twice, dry, delivery, replayed, rotated] = stdout.split(mark).map((text) => text.trim())
  const accepted = JSON.parse(first!)
  assert.equal(accepted.status, 'accepted')
  assert.deepEqual(JSON.parse(twice!), { ...accepted, status: 'duplicate' })
  const task = (await test.send('GET', `${project.path}/tasks/${accepted.task_id}`)).body
  assert.match(task.input, /propose a fix: <data-\w{8}>Payments are slow<\/data-\w{8}>$/)
  assert.match(task.thread_id, /^thread_/)
  assert.deepEqual([JSON.parse(dry!).status, JSON.parse(dry!).reason], ['filtered', 'filter'])
  assert.deepEqual([JSON.parse(delivery!).id, JSON.parse(delivery!).duplicates], [accepted.delivery_id, 1])
  assert.equal(JSON.parse(replayed!).status, 'accepted')
  assert.match(JSON.parse(rotated!).url, /\/hooks\/[A-Za-z0-9_-]{43}$/)
})

it('the guide to triggers has the current limits', () => {
  const text = guide.replaceAll(/\s+/g, ' ')
  for (const name of [...triggerSources, ...filterOperators, ...filteredReasons])
    assert.ok(text.includes(`\`${name}\``), name)
  const number = new Intl.NumberFormat('en')
  for (const line of [
    `recognized for ${retention_days.trigger_deliveries} days`,
    `the same delivery for ${triggerBounds.same_bytes_hours} hours`,
    `differ by at most ${triggerBounds.tolerance_seconds / 60} minutes`,
    `more than ${buckets['triggers.receive'].minute} deliveries in a minute, or ${number.format(bounds.queued_tasks)} tasks`,
    `more than ${triggerBounds.body_bytes / 1_048_576} MiB`,
  ])
    assert.ok(text.includes(line), line)
})
