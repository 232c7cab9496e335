import assert from 'node:assert/strict'
import { test } from 'node:test'
import { roles } from '#contract/core/scopes.ts'
import { rolesToGive, disabledReasonToChange, disabledReasonToInvite, disabledReasonToLeave } from './member-rules.ts'

test('only actions that the service permits are offered: who may change whom, invite, and leave', () => {
  const may = (role: (typeof roles)[number], owners: number) =>
    roles.filter((member) => disabledReasonToChange({ role, owners }, member) === undefined)
  assert.deepEqual(may('owner', 2), [...roles])
  assert.deepEqual(may('owner', 1), ['admin', 'member', 'viewer'])
  assert.deepEqual(may('admin', 2), ['admin', 'member', 'viewer'])
  assert.deepEqual([may('member', 2), may('viewer', 2)], [[], []])
  assert.ok(!rolesToGive({ role: 'admin', owners: 2 }, roles).includes('owner'))
  assert.deepEqual(
    roles.map((role) => disabledReasonToInvite({ role, owners: 1 }) === undefined),
    [true, true, false, false],
  )
  assert.deepEqual(
    roles.map((role) => disabledReasonToLeave({ role, owners: 1 }) === undefined),
    [false, true, true, true],
  )
})
