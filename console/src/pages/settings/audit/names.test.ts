import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AuditEntry } from '#sdk/types.ts'
import { actorName, namesOf } from './names.ts'

const entry = (target: string | null, before: object | null, after: object | null): AuditEntry =>
  ({ target, before, after, actor: { id: 'user_1', name: 'Ada' } }) as unknown as AuditEntry

test('names of the audit log are the newest that its entries tell, of targets and of actors', () => {
  const names = namesOf([
    entry('agent_1', { name: 'old' }, { name: 'new' }),
    entry('agent_1', null, { name: 'old' }),
    entry('key_1', { name: 'billing' }, null),
    entry('agent_2', null, { config: {} }),
    entry(null, null, null),
  ])
  assert.deepEqual(Object.fromEntries(names), { agent_1: 'new', key_1: 'billing', user_1: 'Ada' })
})

test('every entry of the audit log names who did it', () => {
  const by = (actor: { id: string; name?: string } | null, ip: string | null) => actorName({ actor, ip })
  assert.equal(by({ id: 'user_1', name: 'Ada' }, '127.0.0.1'), 'Ada')
  assert.equal(by({ id: 'user_2' }, '127.0.0.1'), 'Deleted user')
  assert.equal(by({ id: 'client_2' }, '127.0.0.1'), 'Deleted app')
  assert.equal(by(null, '127.0.0.1'), 'Unidentified caller')
  assert.equal(by(null, null), 'Cadre')
})
