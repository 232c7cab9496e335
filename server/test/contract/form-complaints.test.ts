import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createAgent } from '#contract/resources/agents.ts'
import { complaintAt, complaintsOf } from '../../../console/src/pages/agent-form/complaints.ts'
import { bodyOfNew, emptyDraft, type Draft } from '../../../console/src/pages/agent-form/draft.ts'
import { check } from '../../src/http/validation.ts'

const draft = (members: Partial<Draft>): Draft => ({ ...emptyDraft, name: 'an agent', ...members })
const config = (members: object): Draft => draft({ config: { model: 'builtin/echo', ...members } })

describe('the form of an agent complains in the words of the API', () => {
  const drafts: Record<string, Draft> = {
    'nothing wrong': config({ temperature: 1, max_steps: 3, tools: ['current_time'] }),
    'no name': draft({ name: '' }),
    'a name of spaces': draft({ name: '   ' }),
    'a long name': draft({ name: 'x'.repeat(500) }),
    'a long description': draft({ description: 'x'.repeat(5000) }),
    'an invalid model': config({ model: 'no model' }),
    'numbers out of range': config({ temperature: 9, max_steps: 0, timeout_seconds: 1e9, max_concurrent_tasks: -1 }),
    'invalid numbers': config({ max_tokens: 1.5, max_steps: 'many' }),
    'an invalid policy': config({ tool_policies: { current_time: 'maybe' } }),
    'invalid tools': config({ tools: 'current_time' }),
    'tools without a name': config({ tools: ['', 3] }),
    'a variable with a wrong name': draft({ environment: { 'not a name': 'x' } }),
    'instructions that are too long': config({ system_prompt: 'x'.repeat(300_000) }),
    'several errors': draft({ name: '', config: { model: '', retry_policy: { max_attempts: 99 } } }),
  }
  for (const [what, of] of Object.entries(drafts)) {
    it(`the form of an agent has the issues of the API for ${what}`, () => {
      const issues = check(createAgent.body, bodyOfNew(of))
      const byField = (a: { field: string }, b: { field: string }) => (a.field < b.field ? -1 : 1)
      assert.deepEqual(
        complaintsOf(of).toSorted(byField),
        issues.map(({ field, message, code }) => ({ field, message, code })).toSorted(byField),
      )
    })
  }

  it('at a field that was changed, and no other', () => {
    const before = emptyDraft
    const wrong = draft({ name: '', config: { model: 'builtin/echo', max_steps: 0 } })
    assert.equal(complaintAt('name', { draft: wrong, before }), undefined)
    assert.equal(complaintAt('config.max_steps', { draft: wrong, before })?.code, 'out_of_range')
    assert.equal(complaintAt('config.max_tokens', { draft: wrong, before }), undefined)
  })

  it('the form of an agent shows an error of the API until its value changes', () => {
    const taken = { field: 'name', message: 'is taken', code: 'conflict' }
    const sent = { draft: draft({ name: 'taken' }), issues: [taken] }
    const shown = (name: string) => complaintAt('name', { draft: draft({ name }), before: emptyDraft, sent })
    assert.deepEqual(shown('taken'), taken)
    assert.equal(shown('free'), undefined)
  })
})
