import assert from 'node:assert/strict'
import { it } from 'node:test'
import { isAt, momentOfPlace, placeOf } from './log-place.ts'
import type { LogLine } from '../../task-parts/types.ts'

const timestamp = '2026-11-20T09:30:01.210Z'
const line = (message: string): LogLine => ({ timestamp, level: 'info', message, context: { task_id: 'task_1' } })

it('a link to a line names it among others of its moment; a moment alone names all of them', () => {
  const place = placeOf(line('Task started'))
  assert.equal(momentOfPlace(place), timestamp)
  assert.deepEqual(
    [
      line('Task started'),
      line('Task completed'),
      { ...line('Task started'), timestamp: '2026-11-20T09:30:01.211Z' },
    ].map((one) => isAt(one, place)),
    [true, false, false],
  )
  assert.ok(isAt(line('Task completed'), timestamp))
})
