import assert from 'node:assert/strict'
import { it } from 'node:test'
import { estimateInput, type NextCall } from './estimate.ts'
import type { ModelMessage } from '../models/model.ts'
import type { Step } from '../task.ts'

const user = (content: string): ModelMessage => ({ role: 'user', content })
const call = (messages: number, input_tokens: number, output_tokens: number): Step => ({
  task_id: 'task_1',
  index: 0,
  id: 'step_1',
  agent_id: 'agent_1',
  type: 'model_call',
  status: 'completed',
  attempt: 1,
  failures: 0,
  name: 'openai/gpt-4o',
  input: { messages, message_id: 'msg_1' },
  output: null,
  error: null,
  model: null,
  usage: { input_tokens, output_tokens, cached_tokens: 0, cost_usd: null },
})
const estimate = (more: Partial<NextCall>) =>
  estimateInput({ messages: [], system_prompt: undefined, tools: [], steps: [], ...more })

it('the first call of a task is estimated by the bytes of prompt, messages and tools', () => {
  assert.equal(estimate({ messages: [user('123456')] }), 1 + 4 + 2)
  assert.equal(estimate({ system_prompt: '1234567' }), 1 + 3)
  const tools = [{ name: 'a', description: '', parameters: {} }]
  assert.equal(estimate({ tools }), Math.ceil(JSON.stringify(tools).length / 3))
  assert.equal(estimate({ messages: [user('ä'.repeat(30))] }), 1 + 4 + 20, 'bytes, not characters')
})

it("a later call is estimated as the provider's last count, its answer, and the bytes since", () => {
  const messages = [user('x'.repeat(9000)), { role: 'assistant' as const, content: 'y'.repeat(900) }, user('123456')]
  assert.equal(estimate({ messages, steps: [call(1, 2000, 50)] }), 2000 + 50 + 4 + 2)
})

it('the estimate ignores a provider that reports zero tokens', () => {
  const messages = [user('123456'), { role: 'assistant' as const, content: '123' }]
  assert.equal(estimate({ messages, steps: [call(1, 0, 0)] }), 1 + 6 + 5)
})
