import { call, list, raw } from '../operation.ts'

const project = '/api/v1/projects/{project_id}'
const one = `${project}/tasks/{task_id}` as const

export const taskMethods = {
  /** Give an agent a task. */
  create: call('createTask', 'POST', `${project}/agents/{agent_id}/tasks`, 'body'),
  /** List a project's tasks. */
  list: list('listTasks', 'GET', `${project}/tasks`, 'tasks'),
  /** Read a task's artifacts. */
  artifacts: call('listTaskArtifacts', 'GET', `${one}/artifacts`),
  /** List an agent's tasks. */
  listOfAgent: list('listAgentTasks', 'GET', `${project}/agents/{agent_id}/tasks`, 'tasks'),
  /** Read a task. */
  get: call('getTask', 'GET', one, 'query'),
  /** Cancel a task. */
  cancel: call('cancelTask', 'POST', `${one}/cancel`, 'body'),
  /** Read a task's journal. */
  steps: list('listTaskSteps', 'GET', `${one}/steps`, 'steps'),
  /** Read a task's events. */
  events: list('listTaskEvents', 'GET', `${one}/events`, 'events'),
  /** Stream a task, as it comes over the line; `stream` reads it. */
  rawStream: raw('streamTaskEvents', 'GET', `${one}/events/stream`, 'query'),
  /** Send a task a message. */
  sendMessage: call('sendTaskMessage', 'POST', `${one}/messages`, 'body'),
  /** Retry a task. */
  retry: call('retryTask', 'POST', `${one}/retry`, 'body'),
  /** Change a task's own budget. */
  updateBudget: call('updateTaskBudget', 'PUT', `${one}/budget`, 'body'),
}

export const threadMethods = {
  /** Begin a conversation. */
  create: call('createThread', 'POST', `${project}/threads`, 'body'),
  /** List threads. */
  list: list('listThreads', 'GET', `${project}/threads`, 'threads'),
  /** Read a thread. */
  get: call('getThread', 'GET', `${project}/threads/{thread_id}`),
  /** Delete a thread. */
  delete: call('deleteThread', 'DELETE', `${project}/threads/{thread_id}`),
  /** Read a thread's messages. */
  messages: list('listThreadMessages', 'GET', `${project}/threads/{thread_id}/messages`, 'messages'),
}

export const approvalMethods = {
  /** List approvals. */
  list: list('listApprovals', 'GET', `${project}/approvals`, 'approvals'),
  /** Read an approval. */
  get: call('getApproval', 'GET', `${project}/approvals/{approval_id}`),
  /** Answer an approval. */
  resolve: call('resolveApproval', 'POST', `${project}/approvals/{approval_id}/resolve`, 'body'),
}

const schedule = `${project}/schedules/{schedule_id}` as const

export const scheduleMethods = {
  /** List schedules. */
  list: list('listSchedules', 'GET', `${project}/schedules`, 'schedules'),
  /** Create a schedule. */
  create: call('createSchedule', 'POST', `${project}/schedules`, 'body'),
  /** Read a schedule. */
  get: call('getSchedule', 'GET', schedule),
  /** Update a schedule. */
  update: call('updateSchedule', 'PUT', schedule, 'body'),
  /** Delete a schedule. */
  delete: call('deleteSchedule', 'DELETE', schedule),
  /** Pause a schedule. */
  pause: call('pauseSchedule', 'POST', `${schedule}/pause`),
  /** Resume a schedule. */
  resume: call('resumeSchedule', 'POST', `${schedule}/resume`),
  /** Trigger a schedule. */
  trigger: call('triggerSchedule', 'POST', `${schedule}/trigger`),
}
