import assert from 'node:assert/strict'
import { it } from 'node:test'
import { toolCall } from '../../../../test/tool-call.ts'
import { currentTime } from './current-time.ts'
import { ToolError } from '../tool.ts'

const tool = currentTime(() => new Date('2026-11-20T23:30:05.500Z'))
const at = async (args: object) => JSON.parse((await tool.call({ ...args }, toolCall())).content)

it('current_time tells the time in UTC, or where it is asked for', async () => {
  assert.deepEqual(await at({}), { time: '2026-11-20T23:30:05+00:00', weekday: 'Friday', time_zone: 'UTC' })
  assert.deepEqual(await at({ time_zone: 'Europe/Berlin' }), {
    time: '2026-11-21T00:30:05+01:00',
    weekday: 'Saturday',
    time_zone: 'Europe/Berlin',
  })
  assert.equal((await at({ time_zone: 'Asia/Kathmandu' })).time, '2026-11-21T05:15:05+05:45')
})

it('current_time fails for an unknown time zone', async () => {
  for (const time_zone of ['Mars/Olympus', '', '../etc', 'x'.repeat(64)])
    await assert.rejects(tool.call({ time_zone }, toolCall()), (error) => {
      assert.ok(error instanceof ToolError)
      assert.equal(error.code, 'unknown_time_zone')
      return true
    })
})
