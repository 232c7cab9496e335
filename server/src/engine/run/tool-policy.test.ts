import assert from 'node:assert/strict'
import { it } from 'node:test'
import { policyOf } from './tool-policy.ts'

it('the policy of a server applies to its tools without a policy', () => {
  const tool_policies = { github: 'ask', 'github/list_issues': 'auto', pay: 'deny' } as const
  const policies = ['github', 'github/create_issue', 'github/list_issues', 'pay', 'weather', 'constructor'].map(
    (name) => policyOf({ tool_policies }, name),
  )
  assert.deepEqual(policies, ['ask', 'ask', 'auto', 'deny', 'auto', 'auto'])
  assert.equal(policyOf({}, 'github/create_issue'), 'auto')
})
