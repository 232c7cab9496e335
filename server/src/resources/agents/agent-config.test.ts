import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let agents: string
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'configs' } })
  agents = `/api/v1/projects/proj_${body.id}/agents`
})
after(() => test.stop())

let names = 0
const create = (config: object) => test.send('POST', agents, { body: { name: `agent-${++names}`, config } })
const update = (id: string, config: object) => test.send('PUT', `${agents}/${id}`, { body: { config } })

const wrong: [field: string, code: string, config: object][] = [
  ['config.fallback_models', 'invalid_format', { fallback_models: 'openai/a' }],
  ['config.fallback_models', 'too_long', { fallback_models: Array.from({ length: 9 }, () => 'openai/a') }],
  ['config.fallback_models[1]', 'required', { fallback_models: ['openai/a', ''] }],
  ['config.fallback_models[0]', 'invalid_format', { fallback_models: [' openai/a'] }],
  ['config.fallback_models[0]', 'too_long', { fallback_models: ['x'.repeat(129)] }],
  ['config.max_concurrent_tasks', 'out_of_range', { max_concurrent_tasks: 0 }],
  ['config.max_concurrent_tasks', 'out_of_range', { max_concurrent_tasks: 1001 }],
  ['config.max_concurrent_tasks', 'invalid_format', { max_concurrent_tasks: 1.5 }],
  ['config.max_steps', 'out_of_range', { max_steps: 0 }],
  ['config.max_steps', 'out_of_range', { max_steps: 1001 }],
  ['config.timeout_seconds', 'out_of_range', { timeout_seconds: 0 }],
  ['config.timeout_seconds', 'out_of_range', { timeout_seconds: 86_401 }],
  ['config.tool_policies', 'invalid_format', { tool_policies: ['ask'] }],
  ['config.tool_policies.http_request', 'invalid_choice', { tool_policies: { http_request: 'maybe' } }],
  ['config.tool_policies.http_request', 'invalid_choice', { tool_policies: { http_request: 'ASK' } }],
  ['config.tool_policies.wait', 'invalid_format', { tool_policies: { wait: true } }],
  ['config.tool_policies', 'too_long', { tool_policies: { ['x'.repeat(129)]: 'ask' } }],
  ['config.approval_timeout_seconds', 'out_of_range', { approval_timeout_seconds: 59 }],
  ['config.approval_on_timeout', 'invalid_choice', { approval_on_timeout: 'wait' }],
  ['config.retry', 'invalid_format', { retry: 3 }],
  ['config.retry.max_attempts', 'out_of_range', { retry: { max_attempts: 0 } }],
  ['config.retry.max_attempts', 'out_of_range', { retry: { max_attempts: 21 } }],
  ['config.retry.max_attempts', 'invalid_format', { retry: { max_attempts: '5' } }],
  ['config.retry.initial_delay_seconds', 'out_of_range', { retry: { initial_delay_seconds: -1 } }],
  ['config.retry.initial_delay_seconds', 'out_of_range', { retry: { initial_delay_seconds: 3601 } }],
  ['config.retry.max_delay_seconds', 'out_of_range', { retry: { max_delay_seconds: 3601 } }],
  ['config.doors', 'invalid_format', { doors: true }],
  ['config.doors.openai', 'invalid_format', { doors: { openai: 'on' } }],
  ['config.doors.openai.overrides[0]', 'invalid_choice', { doors: { openai: { overrides: ['seed'] } } }],
  ['config.doors.openai.progress', 'invalid_choice', { doors: { openai: { progress: 'text' } } }],
  ['config.doors.mcp.published', 'invalid_format', { doors: { mcp: { published: 'yes' } } }],
  ['config.doors.mcp.wait_seconds', 'out_of_range', { doors: { mcp: { wait_seconds: 301 } } }],
  ['config.doors.mcp.on_close', 'invalid_choice', { doors: { mcp: { on_close: 'stop' } } }],
  ['config.doors.a2a.v0_3', 'invalid_format', { doors: { a2a: { v0_3: 1 } } }],
  ['config.doors.agui', 'invalid_format', { doors: { agui: true } }],
  ['config.budget', 'invalid_format', { budget: 5 }],
  ['config.budget.max_cost_usd', 'out_of_range', { budget: { max_cost_usd: -0.01 } }],
  ['config.budget.max_cost_usd', 'out_of_range', { budget: { max_cost_usd: 1_000_001 } }],
  ['config.budget.max_tokens', 'out_of_range', { budget: { max_tokens: 0 } }],
  ['config.budget.max_tokens', 'out_of_range', { budget: { max_tokens: 2_147_483_648 } }],
  ['config.budget.max_steps', 'out_of_range', { budget: { max_steps: 1001 } }],
  ['config.budget.max_tool_calls', 'out_of_range', { budget: { max_tool_calls: -1 } }],
  ['config.budget.max_tool_calls', 'invalid_format', { budget: { max_tool_calls: 'many' } }],
]

const full = {
  approval_timeout_seconds: 600,
  approval_on_timeout: 'cancel',
  fallback_models: ['openai/a', 'builtin/echo'],
  max_concurrent_tasks: 2,
  max_steps: 10,
  timeout_seconds: 60,
  tool_policies: { http_request: 'ask', 'github/create_issue': 'deny' },
  retry: { max_attempts: 3, initial_delay_seconds: 0, max_delay_seconds: 1.5 },
  budget: { max_cost_usd: 1.5, max_tokens: 1000, max_steps: 5, max_tool_calls: 0 },
}

describe('members of a configuration', () => {
  for (const [field, code, config] of wrong) {
    it(`${field} of ${JSON.stringify(Object.values(config)[0]).slice(0, 50)} is refused by its path`, async () => {
      const { body: agent } = await create({})
      for (const { status, body } of [await create(config), await update(agent.id, config)]) {
        assert.equal(status, 400, JSON.stringify(body))
        assert.deepEqual(
          [body.error.code, body.error.details[0].field, body.error.details[0].code],
          ['validation_error', field, code],
        )
      }
    })
  }

  it('members of a configuration are stored and returned unchanged', async () => {
    const { status, body } = await create(full)
    assert.equal(status, 201, JSON.stringify(body))
    const { model, tools, ...given } = body.config
    assert.deepEqual(given, full)
    assert.deepEqual((await test.send('GET', `${agents}/${body.id}`)).body.config, body.config)
  })

  it('an invalid configuration is refused with all of its errors at once', async () => {
    const { body } = await create({ retry: { max_attempts: 0 }, budget: { max_steps: 0 }, max_steps: 'x' })
    assert.deepEqual(body.error.details.map(({ field }: { field: string }) => field).sort(), [
      'config.budget.max_steps',
      'config.max_steps',
      'config.retry.max_attempts',
    ])
  })
})

describe('an update of the configuration (RFC 7396)', () => {
  const cases: [string, object, object][] = [
    [
      'changes one policy, removes another, leaves the rest',
      { tool_policies: { http_request: null, wait: 'auto' } },
      { tool_policies: { 'github/create_issue': 'deny', wait: 'auto' } },
    ],
    ['removes all policies', { tool_policies: null }, { tool_policies: undefined }],
    [
      'changes one member of retry',
      { retry: { max_attempts: 1, max_delay_seconds: null } },
      { retry: { max_attempts: 1, initial_delay_seconds: 0 } },
    ],
    ['removes retry', { retry: null }, { retry: undefined }],
    [
      'changes one limit of the budget',
      { budget: { max_steps: null, max_tokens: 5 } },
      { budget: { max_cost_usd: 1.5, max_tokens: 5, max_tool_calls: 0 } },
    ],
    ['replaces fallback models whole', { fallback_models: ['openai/b'] }, { fallback_models: ['openai/b'] }],
    [
      'removes what is null',
      { max_concurrent_tasks: null, approval_on_timeout: null },
      { max_concurrent_tasks: undefined, approval_on_timeout: undefined },
    ],
  ]
  for (const [what, patch, expected] of cases) {
    it(`an update of the configuration of an agent ${what}`, async () => {
      const { body: before } = await create(full)
      const { status, body } = await update(before.id, patch)
      assert.equal(status, 200, JSON.stringify(body))
      assert.deepEqual(body.config, JSON.parse(JSON.stringify({ ...before.config, ...expected })))
    })
  }
})
