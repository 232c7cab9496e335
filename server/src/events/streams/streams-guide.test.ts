import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { setTimeout as delay } from 'node:timers/promises'
import { createParser } from 'eventsource-parser'
import { liveEventTypes } from '#contract/tasks/task-lifecycle.ts'
import type { Frame } from '../../../test/event-stream.ts'
import { eventually } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { createProject } from '../../../test/fixtures.ts'

const guide = readFileSync(new URL('../../../../docs/guides/streams.md', import.meta.url), 'utf8')
const examples = [...guide.matchAll(/```sh\n(.*?)```/gs)].map(([, text = '']) => text)

/** Between two tasks: what a shell prints in five seconds has to fit into the megabyte that is kept of it. */
const pause_ms = 25

it('the guide of the streams does what it says', async (t) => {
  const test = await shareTestService()
  t.after(() => test.stop())
  const project = await createProject(test.send, 'guide')
  const agents = `${project.path}/agents`
  const { body: agent } = await test.send('POST', agents, { body: { name: 'guide' } })
  await eventually(async () => (await test.send('GET', `${agents}/${agent.id}`)).body.status === 'running')
  const env = {
    ...process.env,
    CADRE: `${test.url}/api/v1`,
    KEY: test.owner.api_key,
    PROJECT: String(project.id),
    AGENT: agent.id as string,
  }
  /** Output of a shell that runs examples; curl with a time limit reports it by its exit status. */
  const say = async (text: string): Promise<string> => {
    const { stdout } = await promisify(execFile)('sh', ['-c', `${text}\nexit 0`], { env })
    return stdout
  }
  const [first = '', again = '', whole = '', ...more] = examples
  assert.equal(more.length, 0)

  const frames = framesOf(await say(first))
  assert.deepEqual([frames[0]!.type, frames[0]!.id], ['task.snapshot', undefined])
  assert.deepEqual(
    frames.slice(1).map(({ id }) => Number(id)),
    frames.slice(1).map((_, i) => i + 1),
  )
  assert.equal(frames.at(-1)!.type, 'task.completed')

  const made = first.slice(0, first.indexOf('curl -sN'))
  const rest = framesOf(await say(made + again))
  assert.deepEqual([rest[0]!.type, rest[1]!.id], ['task.snapshot', '4'])

  let isWatched = true
  const watching = say(whole).finally(() => (isWatched = false))
  // When it has begun only the shell knows: there are tasks as long as it watches, but no more than it can take.
  while (isWatched) {
    await test.send('POST', `${agents}/${agent.id}/tasks?wait=1`, { body: { input: 'Hello.' } })
    await Promise.race([watching, delay(pause_ms)])
  }
  const seen = framesOf(await watching)
  assert.equal(seen[0]!.type, 'project.snapshot')
  assert.ok(seen.some(({ type }) => type === 'task.completed'))
  for (const type of liveEventTypes) assert.ok(guide.includes(`\`${type}\``) || guide.includes(`event: ${type}`), type)
})

function framesOf(text: string): Frame[] {
  const frames: Frame[] = []
  const parser = createParser({
    onEvent: ({ id, event = '', data }) => frames.push({ id, type: event, data: JSON.parse(data) }),
  })
  parser.feed(text)
  return frames
}
