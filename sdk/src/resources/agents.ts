import { call, list } from '../operation.ts'

const all = '/api/v1/projects/{project_id}/agents'
const one = `${all}/{agent_id}` as const

export const agentMethods = {
  /** List agents. */
  list: list('listAgents', 'GET', all, 'agents'),
  /** Create an agent. */
  create: call('createAgent', 'POST', all, 'body'),
  /** Read an agent. */
  get: call('getAgent', 'GET', one),
  /** Update an agent. */
  update: call('updateAgent', 'PUT', one, 'body'),
  /** Delete an agent. */
  delete: call('deleteAgent', 'DELETE', one),
  /** Start an agent. */
  start: call('startAgent', 'POST', `${one}/start`),
  /** Pause an agent. */
  pause: call('pauseAgent', 'POST', `${one}/pause`),
  /** Stop an agent. */
  stop: call('stopAgent', 'POST', `${one}/stop`),
  /** Restart an agent. */
  restart: call('restartAgent', 'POST', `${one}/restart`),
  /** List an agent's versions. */
  listVersions: list('listAgentVersions', 'GET', `${one}/versions`, 'versions'),
  /** Read a version of an agent. */
  getVersion: call('getAgentVersion', 'GET', `${one}/versions/{version}`),
  /** Roll an agent back. */
  rollback: call('rollbackAgent', 'POST', `${one}/rollback`, 'body'),
  /** Read an agent's log. */
  logs: list('getAgentLogs', 'GET', `${one}/logs`, 'logs'),
  /** Read an agent's metrics. */
  metrics: call('getAgentMetrics', 'GET', `${one}/metrics`, 'query'),
  /** Read the statistics of several agents. */
  statistics: call('listAgentStatistics', 'GET', `${all}/statistics`, 'query'),
}

export const testCaseMethods = {
  /** Keep a test case. */
  create: call('createTestCase', 'POST', `${one}/test-cases`, 'body'),
  /** List test cases. */
  list: list('listTestCases', 'GET', `${one}/test-cases`, 'test_cases'),
  /** Read a test case. */
  get: call('getTestCase', 'GET', `${one}/test-cases/{test_case_id}`),
  /** Change a test case. */
  update: call('updateTestCase', 'PUT', `${one}/test-cases/{test_case_id}`, 'body'),
  /** Delete a test case. */
  delete: call('deleteTestCase', 'DELETE', `${one}/test-cases/{test_case_id}`),
}

/** Those that stand outside of a project's path. */
export const launchMethods = {
  /** Launch an agent by name. */
  launch: call('launchAgent', 'POST', '/api/v1/agents', 'body'),
}
