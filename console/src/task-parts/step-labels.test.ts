import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatTokens, totalTokens } from '../format.ts'
import { compactionWords, stepTitle } from './step-labels.ts'

test('a compaction says how many steps its summary stands for, also while it goes on and where it failed', () => {
  assert.equal(stepTitle({ type: 'compaction', name: 'openai/gpt-5' }), 'Context compacted')
  assert.equal(stepTitle({ type: 'tool_call', name: 'weather' }), 'weather')
  const of = (status: 'started' | 'completed' | 'failed', output: object | null) => compactionWords({ status, output })
  assert.match(of('completed', { summary: 'x', before_step: 12 }), /^The first 12 steps were replaced/)
  assert.match(of('completed', { summary: 'x', before_step: 1 }), /^The first step was replaced/)
  assert.match(of('completed', { summary: 'x', before_step: 0, kept_history: 3 }), /of the thread/)
  assert.match(of('started', null), /being summarized/)
  assert.match(of('failed', null), /were to be replaced/)
})

test('tokens tell what was cached and what was reasoning, where something was', () => {
  assert.equal(totalTokens({ input_tokens: 12, output_tokens: 9, cached_tokens: 4 }), '21 tokens')
  assert.equal(totalTokens({ input_tokens: 1 }), '1 token')
  assert.deepEqual(formatTokens({ input_tokens: 12, output_tokens: 9, cached_tokens: 0 }), { in: '12', out: '9' })
  assert.deepEqual(formatTokens({ input_tokens: 12, cached_tokens: 4, output_tokens: 9, reasoning_tokens: 5 }), {
    in: '12 (4 cached)',
    out: '9 (5 reasoning)',
  })
})
