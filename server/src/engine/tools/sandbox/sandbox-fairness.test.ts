import assert from 'node:assert/strict'
import { it } from 'node:test'
import { pino } from 'pino'
import { toolCall } from '../../../../test/tool-call.ts'
import { ToolError } from '../tool.ts'
import { runJavascript } from './run-javascript.ts'
import { makeSandboxes, sandboxTurns } from './sandbox.ts'

const endless = { code: 'for (;;);', timeout_seconds: 12 }

it('twenty looping programs of a project delay a program of another by a second at most', async () => {
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

it('a program that finds the queue of its project full is refused with an error that its model reads', async () => {
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
