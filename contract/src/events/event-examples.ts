import type { EventData } from './event-payloads.ts'
import { testEventName, type OutboxEventName } from './events.ts'
import { artifactExample } from '../resources/files.ts'
import { agentParameter, projectParameter } from '../core/schemas.ts'
import type { TaskState } from '../tasks/task-lifecycle.ts'

const ids = {
  user: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  task: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4',
  step: 'step_01jcm3x5v8f9a2b4c6d8e0g2h4',
  approval: 'appr_01jcm3x5v8f9a2b4c6d8e0g2h4',
  budget: 'budget_01jcm3x5v8f9a2b4c6d8e0g2h4',
  webhook: 'wh_01jcm3x5v8f9a2b4c6d8e0g2h4',
  request: 'req_01jcm3x5v8f9a2b4c6d8e0g2',
}
const name = 'support-agent'
const at = { first: '2026-11-20T09:30:00.000Z', begin: '2026-11-20T09:30:01.210Z', end: '2026-11-20T09:30:04.530Z' }

const project = { id: 42, name: 'customer-support', created_at: at.first, updated_at: at.first }
const running = { id: agentParameter.example, name, project_id: projectParameter.example, status: 'running' as const }
const stopped = { ...running, status: 'stopped' as const }
const ended = { id: ids.task, started_at: at.begin, finished_at: at.end, duration_seconds: 3.32 }
const failure = { code: 'provider_unavailable', message: 'The provider did not answer (503).' }

/** The first members of every event of a task. */
function ofTask(status: TaskState, sequence: number) {
  return {
    task: {
      id: ids.task,
      project_id: projectParameter.example,
      agent_id: agentParameter.example,
      agent_version: 3,
      thread_id: null,
      retried_from: null,
      status,
    },
    agent: { id: agentParameter.example, name, project_id: projectParameter.example },
    sequence,
    truncated: false,
  }
}
const usage = {
  input_tokens: 812,
  output_tokens: 96,
  cached_tokens: 0,
  reasoning_tokens: 0,
  steps: 2,
  tool_calls: 1,
  cost_usd: 0.00018,
}
const output = { content: 'We are open from nine to five.', data: null, artifacts: [artifactExample] }
const error = { ...failure, retryable: true, step_id: ids.step }
const toolCall = { call_id: 'call_01jcm3x5v8f9a2b4c6d8e0g2h4', step_id: ids.step, tool: 'refund' }
const approval = {
  approval_id: ids.approval,
  step_id: ids.step,
  kind: 'tool_call' as const,
  tool: 'http_request',
}
const budget = {
  budget_id: ids.budget,
  scope: 'project' as const,
  subject: projectParameter.example,
  unit: 'cost_usd' as const,
  limit: 25,
  resets_at: '2026-12-01T00:00:00.000Z',
}

/** Example `data` of every event, for the reference and the OpenAPI document, and for test deliveries of webhooks. */
export const eventExamples: { readonly [Name in OutboxEventName]: EventData<Name> } = {
  'project.created': { project, user_id: ids.user },
  'project.updated': {
    project: { ...project, name: 'support', updated_at: at.end },
    changed: ['name'],
    user_id: ids.user,
  },
  'project.deleted': { project: { id: project.id, name: project.name }, user_id: ids.user },
  'agent.launched': { agent: running, trigger: 'start', user_id: ids.user },
  'agent.completed': { agent: running, task: { ...ended, status: 'completed', output }, truncated: false },
  'agent.failed': { agent: running, task: { ...ended, status: 'failed' }, error: failure },
  'agent.stopped': { agent: stopped, reason: 'requested', user_id: ids.user },
  'error.occurred': {
    error: { ...failure, severity: 'medium', affected_resources: [running.id, ids.task] },
    user_id: ids.user,
    request_id: ids.request,
  },
  'credential.expired': {
    credential: {
      id: 'cred_01jcm3x5v8f9a2b4c6d8e0g2h4',
      name: 'GITHUB',
      project_id: projectParameter.example,
      status: 'needs_authorization',
    },
    error: { code: 'invalid_grant', message: 'The issuer refuses the grant: "invalid_grant".' },
  },
  [testEventName]: { message: 'This is a test.', webhook_id: ids.webhook, user_id: ids.user },
  'task.created': ofTask('queued', 1),
  'task.started': { ...ofTask('running', 2), attempt: 1 },
  'task.waiting': {
    ...ofTask('waiting', 7),
    wait: { reason: 'approval', since: at.begin, until: null, approval_ids: [ids.approval] },
  },
  'task.resumed': { ...ofTask('running', 9), attempt: 2, reason: 'approval' },
  'task.retrying': { ...ofTask('running', 3), attempt: 2, reason: 'worker_lost' },
  'task.completed': { ...ofTask('completed', 12), output, usage },
  'task.failed': { ...ofTask('failed', 12), error, usage },
  'task.canceled': {
    ...ofTask('canceled', 12),
    reason: 'No longer needed.',
    effects: [{ step_id: ids.step, tool: 'http_request' }],
    uncertain: [],
    cost_usd: usage.cost_usd,
    usage,
  },
  'task.expired': {
    ...ofTask('expired', 12),
    error: { ...error, code: 'task_timeout', message: 'The task took longer than timeout_seconds.' },
    usage,
  },
  'approval.requested': {
    ...ofTask('waiting', 6),
    ...approval,
    arguments: { method: 'DELETE', url: 'https://shop.example.com/orders/4711' },
    expires_at: null,
  },
  'approval.resolved': {
    ...ofTask('waiting', 8),
    ...approval,
    decision: 'reject',
    reason: 'This order has been shipped.',
    resolved_by: ids.user,
  },
  'approval.expired': { ...ofTask('waiting', 8), ...approval, on_timeout: 'reject' },
  'tool.requested': {
    ...ofTask('running', 6),
    ...toolCall,
    arguments: { order: '4711', amount: 12.5 },
    expires_at: '2026-11-20T10:30:00.000Z',
  },
  'tool.resolved': { ...ofTask('waiting', 8), ...toolCall, error: null },
  'budget.warning': { ...ofTask('running', 5), ...budget, spent: 20.1 },
  'budget.reached': { ...ofTask('waiting', 5), ...budget, spent: 24.98 },
}
