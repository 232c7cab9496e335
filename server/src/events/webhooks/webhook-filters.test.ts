import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { passes } from './webhook-filters.ts'

const failed = {
  agent: { id: 'agent_1', name: 'support', project_id: 'proj_42', status: 'error' },
  task: { id: 'task_1', status: 'failed' },
  error: { code: 'provider_refused', message: 'no' },
}
const occurred = {
  error: { code: 'webhook_disabled', message: 'x', severity: 'high', affected_resources: ['wh_1'] },
  user_id: 'user_1',
  request_id: null,
}
const created = { project: { id: 42, name: 'demo' }, user_id: 'user_1' }

describe('filters of a webhook (decision D95)', () => {
  it('limit an event that has the member, in its data or in the error, agent or project of it', () => {
    for (const [filters, data, expected] of [
      [{ severity: ['high', 'critical'] }, occurred, true],
      [{ severity: ['critical'] }, occurred, false],
      [{ user_id: ['user_1'] }, created, true],
      [{ user_id: ['user_2'] }, created, false],
      [{ code: ['provider_refused'] }, failed, true],
      [{ code: ['other'] }, failed, false],
      [{ project_id: ['proj_42'] }, failed, true],
      [{ project_id: ['proj_43'] }, failed, false],
      [{ id: [42] }, created, true],
      [{ id: ['agent_1'] }, failed, true],
      [{ request_id: [null] }, occurred, true],
    ] as const)
      assert.equal(passes(filters, data), expected, JSON.stringify(filters))
  })

  it('filters of a webhook let events through that do not have the member', () => {
    for (const data of [failed, created]) assert.equal(passes({ severity: ['high'] }, data), true)
    assert.equal(passes({}, occurred), true)
  })

  it('filters of a webhook are all to be met', () => {
    assert.equal(passes({ severity: ['high'], code: ['webhook_disabled'] }, occurred), true)
    assert.equal(passes({ severity: ['high'], code: ['other'] }, occurred), false)
  })

  it('filters of a webhook compare as JSON does: by value, with its type', () => {
    assert.equal(passes({ affected_resources: [['wh_1']] }, occurred), true)
    assert.equal(passes({ affected_resources: ['wh_1'] }, occurred), false)
    assert.equal(passes({ id: ['42'] }, created), false)
    assert.equal(passes({ severity: [] }, occurred), false)
  })

  it('filters of a webhook see no members that an object has by nature', () => {
    for (const name of ['constructor', '__proto__', 'toString'])
      assert.equal(passes(JSON.parse(`{"${name}": ["x"]}`), created), true, name)
    assert.equal(passes({ length: [1] }, { agent: ['x'], error: 'text', project: null }), true)
  })

  it('filters of a webhook do not look into the task: its id and status would be taken for those of the agent', () => {
    assert.equal(passes({ status: ['error'] }, failed), true)
    assert.equal(passes({ status: ['failed'] }, failed), false)
  })
})
