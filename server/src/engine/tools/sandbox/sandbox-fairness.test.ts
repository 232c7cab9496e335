import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { pino } from 'pino'
import { eventually } from '../../../../test/harness.ts'
import { toolCall } from '../../../../test/tool-call.ts'
import { ToolError } from '../tool.ts'
import { runJavascript } from './run-javascript.ts'
import { makeSandboxes, sandboxTurns } from './sandbox.ts'

const endless = { code: 'for (;;);', timeout_seconds: 12 }

it('twenty looping programs of one project delay a program of another by at most a second', async () => {
  const tool = runJavascript(makeSandboxes(pino({ level: 'silent' })), {})
  const timed = async (party = toolCall().party): Promise<number> => {
    const began = performance.now()
    assert.equal((await tool.call({ code: '1+1' }, toolCall({ party }))).content, '2')
    return performance.now() - began
  }
  const alone_ms = await timed()
  const stop = new AbortController()
  const looping = Array.from({ length: 20 }, () => tool.call(endless, toolCall({ signal: stop.signal })))
  const { org_id } = toolCall().party
  for (const party of [
    { org_id, project_id: 43 },
    { org_id: 'org_other', project_id: 44 },
  ]) {
    const took_ms = await timed(party)
    // Where the machine is so busy that the program takes long without them, it may take a few times that.
    assert.ok(took_ms <= Math.max(1000, 5 * alone_ms), `took ${took_ms} ms, and ${alone_ms} ms alone`)
  }
  stop.abort(new Error('enough'))
  await Promise.all(looping.map((call) => assert.rejects(call, /enough/)))
})

it('a program beyond the queue of its project fails with an error for the model', async () => {
  const tool = runJavascript(makeSandboxes(pino({ level: 'silent' })), {})
  const stop = new AbortController()
  const { ofProject, waiting } = sandboxTurns
  const calls = Array.from({ length: ofProject + waiting.ofProject }, () =>
    tool.call(endless, toolCall({ signal: stop.signal })),
  )
  await assert.rejects(tool.call({ code: '1+1' }, toolCall()), (error: unknown) => {
    assert.ok(error instanceof ToolError)
    assert.equal(error.code, 'sandbox_busy')
    assert.match(error.message, /not run: 32 others wait already, 32 of them of this project/)
    return true
  })
  stop.abort(new Error('enough'))
  await Promise.all(calls.map((call) => assert.rejects(call, /enough/)))
})

it('a long program gets a lower priority', { skip: process.platform !== 'linux' }, async () => {
  const tool = runJavascript(makeSandboxes(pino({ level: 'silent' })), {})
  const [usual] = await niceness()
  const stop = new AbortController()
  const looping = tool.call(endless, toolCall({ signal: stop.signal }))
  await eventually(async () => (await niceness()).some((nice) => nice > usual!))
  stop.abort(new Error('enough'))
  await assert.rejects(looping, /enough/)
})

it('a program finds a ready thread', async () => {
  const tool = runJavascript(makeSandboxes(pino({ level: 'silent' })), {})
  let started = 0
  const count = (): void => void started++
  process.on('worker', count)
  try {
    await tool.call({ code: '1' }, toolCall())
    await setImmediate()
    assert.equal(started, 2, 'its own and the next')
    await tool.call({ code: '1' }, toolCall())
    await setImmediate()
    assert.equal(started, 3, 'the next')
  } finally {
    process.off('worker', count)
  }
})

/** Of every thread of this process, the first one first. */
async function niceness(): Promise<number[]> {
  const threads = (await readdir('/proc/self/task')).toSorted((one, other) => Number(one) - Number(other))
  const stats = await Promise.all(threads.map((id) => readFile(`/proc/self/task/${id}/stat`, 'utf8').catch(() => '')))
  return stats.filter(Boolean).map((stat) => Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]))
}
