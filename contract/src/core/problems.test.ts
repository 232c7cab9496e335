import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { problems, summarize, type Issue } from './problems.ts'

/** Spec 7.3, decision D28: every code of the error format `agents` with its status. */
const lowercase: Record<string, number[]> = {
  validation_error: [400],
  invalid_json: [400],
  invalid_api_key: [401],
  expired_token: [401],
  invalid_token: [401],
  unauthorized: [401],
  insufficient_scope: [403],
  insufficient_permissions: [403],
  resource_not_found: [404],
  agent_not_found: [404],
  // Only `control` has the problem of a taken project name, with status 400 (decision D25).
  resource_conflict: [400, 409],
  agent_conflict: [409],
  rate_limit_exceeded: [429],
  internal_error: [500],
  service_unavailable: [503],
  method_not_allowed: [405],
  bad_gateway: [502],
  gateway_timeout: [504],
  idempotency_key_reused: [422],
  precondition_failed: [412],
  task_not_found: [404],
  thread_not_found: [404],
  approval_not_found: [404],
  schedule_not_found: [404],
  agent_not_running: [409],
  thread_busy: [409],
  task_already_finished: [409],
  approval_already_resolved: [409],
  budget_exceeded: [429],
  queue_full: [429],
  file_in_use: [409],
  file_too_large: [413],
  range_not_satisfiable: [416],
  quota_exceeded: [429],
  response_not_found: [404],
  conversation_not_found: [404],
  item_not_found: [404],
  tool_call_already_resolved: [409],
  step_key_taken: [409],
  step_already_finished: [409],
  invalid_output: [422],
  lease_lost: [409],
  task_canceled: [409],
  invalid_tool_result: [422],
  request_too_large: [413],
}

/** Spec 7.4 and decision D28: every code of the error format `control` with its status. */
const uppercase: Record<string, number[]> = {
  INVALID_REQUEST: [400],
  INVALID_PROJECT_NAME: [400],
  PROJECT_NAME_TAKEN: [400],
  VALIDATION_ERROR: [400],
  UNAUTHORIZED: [401],
  FORBIDDEN: [403],
  RESOURCE_NOT_FOUND: [404],
  METHOD_NOT_ALLOWED: [405],
  RESOURCE_CONFLICT: [409],
  PRECONDITION_FAILED: [412],
  IDEMPOTENCY_KEY_REUSED: [422],
  RATE_LIMIT_EXCEEDED: [429],
  QUEUE_FULL: [429],
  FILE_TOO_LARGE: [413],
  RANGE_NOT_SATISFIABLE: [416],
  QUOTA_EXCEEDED: [429],
  BUDGET_EXCEEDED: [429],
  INTERNAL_ERROR: [500],
  BAD_GATEWAY: [502],
  SERVICE_UNAVAILABLE: [503],
  GATEWAY_TIMEOUT: [504],
  REQUEST_TOO_LARGE: [413],
  INVALID_TOOL_RESULT: [422],
  INVALID_OUTPUT: [422],
}

describe('everything that can go wrong', () => {
  for (const [kind, { status, agents, control, message }] of Object.entries(problems)) {
    it(`${kind} has a documented code and status in both error formats, and a sentence`, () => {
      assert.ok(lowercase[agents]?.includes(status), `${status} ${agents}`)
      assert.ok(uppercase[control]?.includes(status), `${status} ${control}`)
      assert.match(message, /^[A-Z].*\.$/)
    })
  }

  it('problems have every code of the specification', () => {
    const codes = Object.values(problems).flatMap(({ agents, control }) => [agents, control] as string[])
    const specified = [
      ...Object.keys(lowercase).slice(0, 15),
      ...Object.keys(uppercase).slice(0, 7),
      'RATE_LIMIT_EXCEEDED',
      'INTERNAL_ERROR',
    ]
    assert.deepEqual(
      specified.filter((code) => !codes.includes(code)),
      [],
    )
  })
})

describe('the sentence about a request that is not valid', () => {
  const issue = (field: string, message: string): Issue => ({ field, message, code: 'invalid_format' })

  it('the message about an invalid request names the first issue once and counts the others', () => {
    assert.equal(summarize([issue('name', 'name is required')]), 'The request is not valid: name is required.')
    assert.equal(summarize([issue('body', 'is required')]), 'The request is not valid: body is required.')
    assert.equal(
      summarize([issue('body', 'name or avatar_url is required')]),
      'The request is not valid: name or avatar_url is required.',
    )
    assert.equal(
      summarize([issue('url', 'the port must be 443')]),
      'The request is not valid: url: the port must be 443.',
    )
    assert.equal(
      summarize([issue('a', 'must be an integer'), issue('b', 'x'), issue('c', 'x')]),
      'The request is not valid: a must be an integer, and 2 more issues.',
    )
  })
})
