// Made by `npm run gen` from the operations of the contract.
import type { Http } from '../http.ts'
import { bind, call, form, inProject, list, once, raw, upload, url, type Bound } from '../operation.ts'

export const agents = {
  /** List agents. */
  list: list('listAgents', 'GET', '/api/v1/projects/{project_id}/agents', 'agents'),
  /** Create an agent. */
  create: call('createAgent', 'POST', '/api/v1/projects/{project_id}/agents', 'body'),
  /** Read an agent. */
  get: call('getAgent', 'GET', '/api/v1/projects/{project_id}/agents/{agent_id}'),
  /** Update an agent. */
  update: call('updateAgent', 'PUT', '/api/v1/projects/{project_id}/agents/{agent_id}', 'body'),
  /** Delete an agent. */
  delete: call('deleteAgent', 'DELETE', '/api/v1/projects/{project_id}/agents/{agent_id}'),
  /** Start an agent. */
  start: call('startAgent', 'POST', '/api/v1/projects/{project_id}/agents/{agent_id}/start'),
  /** Pause an agent. */
  pause: call('pauseAgent', 'POST', '/api/v1/projects/{project_id}/agents/{agent_id}/pause'),
  /** Stop an agent. */
  stop: call('stopAgent', 'POST', '/api/v1/projects/{project_id}/agents/{agent_id}/stop'),
  /** Restart an agent. */
  restart: call('restartAgent', 'POST', '/api/v1/projects/{project_id}/agents/{agent_id}/restart'),
  /** Launch an agent by name. */
  launch: call('launchAgent', 'POST', '/api/v1/agents', 'body'),
  /** List an agent's versions. */
  listVersions: list(
    'listAgentVersions',
    'GET',
    '/api/v1/projects/{project_id}/agents/{agent_id}/versions',
    'versions',
  ),
  /** Read a version of an agent. */
  getVersion: call('getAgentVersion', 'GET', '/api/v1/projects/{project_id}/agents/{agent_id}/versions/{version}'),
  /** Roll an agent back. */
  rollback: call('rollbackAgent', 'POST', '/api/v1/projects/{project_id}/agents/{agent_id}/rollback', 'body'),
  /** Read an agent's log. */
  logs: list('getAgentLogs', 'GET', '/api/v1/projects/{project_id}/agents/{agent_id}/logs', 'logs'),
  /** Read an agent's metrics. */
  metrics: call('getAgentMetrics', 'GET', '/api/v1/projects/{project_id}/agents/{agent_id}/metrics', 'query'),
  /** Read the statistics of several agents. */
  statistics: call('listAgentStatistics', 'GET', '/api/v1/projects/{project_id}/agents/statistics', 'query'),
}

export const apiKeys = {
  /** Create an API key. Only this response contains the secret. */
  create: once('createApiKey', 'POST', '/api/v1/auth/api-keys', 'body'),
  /** List API keys. */
  list: list('listApiKeys', 'GET', '/api/v1/auth/api-keys', 'api_keys'),
  /** Read an API key. */
  get: call('getApiKey', 'GET', '/api/v1/auth/api-keys/{key_id}'),
  /** Update an API key. */
  update: call('updateApiKey', 'PUT', '/api/v1/auth/api-keys/{key_id}', 'body'),
  /** Rotate the secret of an API key. */
  rotate: once('rotateApiKey', 'POST', '/api/v1/auth/api-keys/{key_id}/rotate', 'body'),
  /** Read the activity of an API key. */
  activity: call('getApiKeyActivity', 'GET', '/api/v1/auth/api-keys/{key_id}/activity'),
  /** Revoke an API key. */
  delete: call('deleteApiKey', 'DELETE', '/api/v1/auth/api-keys/{key_id}'),
}

export const approvals = {
  /** List approvals. */
  list: list('listApprovals', 'GET', '/api/v1/projects/{project_id}/approvals', 'approvals'),
  /** Read an approval. */
  get: call('getApproval', 'GET', '/api/v1/projects/{project_id}/approvals/{approval_id}'),
  /** Resolve an approval. */
  resolve: call('resolveApproval', 'POST', '/api/v1/projects/{project_id}/approvals/{approval_id}/resolve', 'body'),
}

export const audit = {
  /** Read the audit log. */
  list: list('listAuditEntries', 'GET', '/api/v1/auth/audit', 'entries'),
  /** Export the audit log. Streams one JSON object per line. */
  export: raw('exportAuditEntries', 'GET', '/api/v1/auth/audit/export', 'query'),
}

export const budgets = {
  /** Create a budget. */
  create: call('createBudget', 'POST', '/api/v1/projects/{project_id}/budgets', 'body'),
  /** List budgets. */
  list: list('listBudgets', 'GET', '/api/v1/projects/{project_id}/budgets', 'budgets'),
  /** Read a budget. */
  get: call('getBudget', 'GET', '/api/v1/projects/{project_id}/budgets/{budget_id}'),
  /** Change a budget. */
  update: call('updateBudget', 'PUT', '/api/v1/projects/{project_id}/budgets/{budget_id}', 'body'),
  /** Delete a budget. */
  delete: call('deleteBudget', 'DELETE', '/api/v1/projects/{project_id}/budgets/{budget_id}'),
}

export const credentials = {
  /** Create a credential. */
  create: call('createCredential', 'POST', '/api/v1/projects/{project_id}/credentials', 'body'),
  /** List credentials. */
  list: list('listCredentials', 'GET', '/api/v1/projects/{project_id}/credentials', 'credentials'),
  /** Read a credential. Returns name and state, never the secret or token. */
  get: call('getCredential', 'GET', '/api/v1/projects/{project_id}/credentials/{credential_id}'),
  /** Update a credential. */
  update: call('updateCredential', 'PUT', '/api/v1/projects/{project_id}/credentials/{credential_id}', 'body'),
  /** Delete a credential. */
  delete: call('deleteCredential', 'DELETE', '/api/v1/projects/{project_id}/credentials/{credential_id}'),
  /** Start to connect a credential. Open the URL in a browser that is signed in to this service as the same user. */
  authorize: once('authorizeCredential', 'POST', '/api/v1/projects/{project_id}/credentials/{credential_id}/authorize'),
  /** Complete the connection of a credential. Returns the redirect URI to register at the issuer. */
  callbackUrl: url('finishCredentialAuthorization', 'GET', '/api/v1/credentials/callback'),
  /** Read the client metadata of this service. Its URL is the `client_id` of this service at issuers that accept client metadata documents. */
  client: call('getCredentialClient', 'GET', '/api/v1/credentials/client'),
}

export const files = {
  /** Upload a file. Accepts a `Blob`, bytes, a stream or text. To keep the name of a `File`, pass `{ name: file.name }`. */
  upload: upload('createFile', 'POST', '/api/v1/projects/{project_id}/files'),
  /** List files. */
  list: list('listFiles', 'GET', '/api/v1/projects/{project_id}/files', 'files'),
  /** Read the metadata of a file. */
  get: call('getFile', 'GET', '/api/v1/projects/{project_id}/files/{file_id}'),
  /** Download a file. Returns the response: stream it, or read it whole with `blob()`. */
  content: raw('getFileContent', 'GET', '/api/v1/projects/{project_id}/files/{file_id}/content'),
  /** Delete a file. */
  delete: call('deleteFile', 'DELETE', '/api/v1/projects/{project_id}/files/{file_id}', 'query'),
}

export const invitations = {
  /** Create an invitation. Only this response contains the link. */
  create: once('createInvitation', 'POST', '/api/v1/auth/invitations', 'body'),
  /** List invitations. */
  list: list('listInvitations', 'GET', '/api/v1/auth/invitations', 'invitations'),
  /** Accept an invitation. */
  accept: call('acceptInvitation', 'POST', '/api/v1/auth/invitations/accept', 'body'),
  /** Revoke an invitation. */
  revoke: call('revokeInvitation', 'DELETE', '/api/v1/auth/invitations/{invitation_id}'),
}

export const members = {
  /** List members. */
  list: list('listMembers', 'GET', '/api/v1/auth/members', 'members'),
  /** Read a member. */
  get: call('getMember', 'GET', '/api/v1/auth/members/{user_id}'),
  /** Change a member's role. */
  update: call('updateMember', 'PUT', '/api/v1/auth/members/{user_id}', 'body'),
  /** Remove a member. */
  remove: call('removeMember', 'DELETE', '/api/v1/auth/members/{user_id}'),
}

export const modelProviders = {
  /** Add a model provider. */
  create: call('createModelProvider', 'POST', '/api/v1/model-providers', 'body'),
  /** List model providers. */
  list: call('listModelProviders', 'GET', '/api/v1/model-providers'),
  /** Read a model provider. */
  get: call('getModelProvider', 'GET', '/api/v1/model-providers/{model_provider_id}'),
  /** Change a model provider. */
  update: call('updateModelProvider', 'PUT', '/api/v1/model-providers/{model_provider_id}', 'body'),
  /** Delete a model provider. */
  delete: call('deleteModelProvider', 'DELETE', '/api/v1/model-providers/{model_provider_id}'),
  /** Test a model provider. */
  test: once('testModelProvider', 'POST', '/api/v1/model-providers/{model_provider_id}/test', 'body'),
}

export const oauth = {
  /** Ask a user for access. Returns the URL to open in a browser. */
  authorizeUrl: url('authorize', 'GET', '/oauth2/authorize'),
  /** Exchange a code or a refresh token. */
  token: form('issueToken', 'POST', '/oauth2/token', 'body'),
  /** Ask a user for access, from a device without a browser. */
  authorizeDevice: form('authorizeDevice', 'POST', '/oauth2/device', 'body'),
  /** Revoke a token. */
  revoke: form('revokeToken', 'POST', '/oauth2/revoke', 'body'),
  /** Register an OAuth app. Only this response contains the secret. */
  createClient: once('createOAuthClient', 'POST', '/api/v1/auth/oauth-clients', 'body'),
  /** List OAuth apps. */
  listClients: list('listOAuthClients', 'GET', '/api/v1/auth/oauth-clients', 'oauth_clients'),
  /** Read an OAuth app. */
  getClient: call('getOAuthClient', 'GET', '/api/v1/auth/oauth-clients/{client_id}'),
  /** Update an OAuth app. */
  updateClient: call('updateOAuthClient', 'PUT', '/api/v1/auth/oauth-clients/{client_id}', 'body'),
  /** Delete an OAuth app. */
  deleteClient: call('deleteOAuthClient', 'DELETE', '/api/v1/auth/oauth-clients/{client_id}'),
}

export const organization = {
  /** List the API keys of all members. */
  listApiKeys: list('listOrganizationApiKeys', 'GET', '/api/v1/auth/organization/api-keys', 'api_keys'),
  /** Revoke the API key of any member. */
  revokeApiKey: call('revokeOrganizationApiKey', 'DELETE', '/api/v1/auth/organization/api-keys/{key_id}'),
  /** Read the current organization. */
  get: call('getOrganization', 'GET', '/api/v1/auth/organization'),
  /** Update the current organization. */
  update: call('updateOrganization', 'PUT', '/api/v1/auth/organization', 'body'),
  /** Create an organization. */
  create: call('createOrganization', 'POST', '/api/v1/auth/organizations', 'body'),
  /** Leave an organization. */
  leave: call('leaveOrganization', 'POST', '/api/v1/auth/organization/leave', 'body'),
}

export const projects = {
  /** Create a project. */
  create: call('createProject', 'POST', '/api/v1/projects', 'body'),
  /** List projects. */
  list: list('listProjects', 'GET', '/api/v1/projects', 'projects'),
  /** Read a project. */
  get: call('getProject', 'GET', '/api/v1/projects/{project_id}'),
  /** Rename a project. */
  update: call('updateProject', 'PUT', '/api/v1/projects/{project_id}', 'body'),
  /** Delete a project. */
  delete: call('deleteProject', 'DELETE', '/api/v1/projects/{project_id}'),
  /** Read the statistics of several projects. */
  statistics: call('listProjectStatistics', 'GET', '/api/v1/projects/statistics', 'query'),
  /** Read the logs of a project's agents. */
  logs: list('listProjectLogs', 'GET', '/api/v1/projects/{project_id}/logs', 'logs'),
  /** Read a project's metrics. */
  metrics: call('getProjectMetrics', 'GET', '/api/v1/projects/{project_id}/metrics', 'query'),
  /** Stream a project. Returns the raw response; `stream` parses it. */
  rawStream: raw('streamProjectEvents', 'GET', '/api/v1/projects/{project_id}/events/stream'),
}

export const schedules = {
  /** List schedules. */
  list: list('listSchedules', 'GET', '/api/v1/projects/{project_id}/schedules', 'schedules'),
  /** Preview a cron expression. */
  preview: call('previewSchedule', 'GET', '/api/v1/projects/{project_id}/schedules/preview', 'query'),
  /** Create a schedule. */
  create: call('createSchedule', 'POST', '/api/v1/projects/{project_id}/schedules', 'body'),
  /** Read a schedule. */
  get: call('getSchedule', 'GET', '/api/v1/projects/{project_id}/schedules/{schedule_id}'),
  /** Update a schedule. */
  update: call('updateSchedule', 'PUT', '/api/v1/projects/{project_id}/schedules/{schedule_id}', 'body'),
  /** Delete a schedule. */
  delete: call('deleteSchedule', 'DELETE', '/api/v1/projects/{project_id}/schedules/{schedule_id}'),
  /** Pause a schedule. */
  pause: call('pauseSchedule', 'POST', '/api/v1/projects/{project_id}/schedules/{schedule_id}/pause'),
  /** Resume a schedule. */
  resume: call('resumeSchedule', 'POST', '/api/v1/projects/{project_id}/schedules/{schedule_id}/resume'),
  /** Trigger a schedule. */
  trigger: call('triggerSchedule', 'POST', '/api/v1/projects/{project_id}/schedules/{schedule_id}/trigger'),
}

export const service = {
  /** Say hello. */
  hello: call('hello', 'GET', '/api/v1/hello', 'query'),
  /** Read the service's status. */
  status: call('getStatus', 'GET', '/api/v1/status'),
  /** Read this document. */
  docs: call('getDocs', 'GET', '/api/v1/docs'),
  /** Read the state of the installation. */
  system: call('getSystem', 'GET', '/api/v1/system'),
  /** Remove expired data. */
  purge: call('purgeSystem', 'POST', '/api/v1/system/purge'),
  /** Drain a worker. */
  drainWorker: call('drainWorker', 'POST', '/api/v1/system/workers/{worker_id}/drain'),
  /** Resume a drained worker. */
  resumeWorker: call('resumeWorker', 'POST', '/api/v1/system/workers/{worker_id}/resume'),
  /** List recent requests. */
  requests: list('listRequests', 'GET', '/api/v1/requests', 'requests'),
}

export const sessions = {
  /** Read the current session. */
  current: call('getSession', 'GET', '/api/v1/auth/session'),
  /** List sessions. */
  list: call('listSessions', 'GET', '/api/v1/auth/sessions', 'query'),
  /** End all other sessions. */
  deleteOthers: call('deleteSessions', 'DELETE', '/api/v1/auth/sessions'),
  /** End a session. */
  delete: call('deleteSession', 'DELETE', '/api/v1/auth/sessions/{session_id}'),
}

export const sso = {
  /** List identity providers. */
  list: call('listSsoProviders', 'GET', '/api/v1/auth/sso'),
  /** Sign in with an identity provider. Returns the URL to open in a browser. */
  startUrl: url('startSso', 'GET', '/api/v1/auth/sso/{provider}'),
  /** Complete a sign-in at an identity provider. Returns the redirect URI to register at the provider. */
  callbackUrl: url('finishSso', 'GET', '/api/v1/auth/sso/{provider}/callback'),
  /** List the ways to sign in. */
  listIdentities: call('listIdentities', 'GET', '/api/v1/auth/identities'),
  /** Link an account at an identity provider. */
  link: once('linkIdentity', 'POST', '/api/v1/auth/sso/{provider}/link', 'body'),
  /** Unlink an account at an identity provider. */
  unlink: call('unlinkIdentity', 'DELETE', '/api/v1/auth/identities/{identity_id}'),
}

export const tasks = {
  /** Create a task. */
  create: call('createTask', 'POST', '/api/v1/projects/{project_id}/agents/{agent_id}/tasks', 'body'),
  /** Create many tasks. */
  createBatch: call('createTaskBatch', 'POST', '/api/v1/projects/{project_id}/agents/{agent_id}/tasks/batch', 'body'),
  /** Erase tasks by their metadata. */
  erase: call('eraseTasks', 'POST', '/api/v1/projects/{project_id}/tasks/erase', 'body'),
  /** Erase a task. */
  delete: call('deleteTask', 'DELETE', '/api/v1/projects/{project_id}/tasks/{task_id}'),
  /** List an agent's tasks. */
  listOfAgent: list('listAgentTasks', 'GET', '/api/v1/projects/{project_id}/agents/{agent_id}/tasks', 'tasks'),
  /** List a project's tasks. */
  list: list('listTasks', 'GET', '/api/v1/projects/{project_id}/tasks', 'tasks'),
  /** Read a task. */
  get: call('getTask', 'GET', '/api/v1/projects/{project_id}/tasks/{task_id}', 'query'),
  /** Read the tree of a task. */
  tree: call('getTaskTree', 'GET', '/api/v1/projects/{project_id}/tasks/{task_id}/tree'),
  /** Cancel a task. */
  cancel: call('cancelTask', 'POST', '/api/v1/projects/{project_id}/tasks/{task_id}/cancel', 'body'),
  /** Read a task's journal. */
  steps: list('listTaskSteps', 'GET', '/api/v1/projects/{project_id}/tasks/{task_id}/steps', 'steps'),
  /** Read a task's artifacts. */
  artifacts: call('listTaskArtifacts', 'GET', '/api/v1/projects/{project_id}/tasks/{task_id}/artifacts'),
  /** Read a task's events. */
  events: list('listTaskEvents', 'GET', '/api/v1/projects/{project_id}/tasks/{task_id}/events', 'events'),
  /** Stream a task. Returns the raw response; `stream` parses it. */
  rawStream: raw('streamTaskEvents', 'GET', '/api/v1/projects/{project_id}/tasks/{task_id}/events/stream', 'query'),
  /** Send a message to a task. */
  sendMessage: call('sendTaskMessage', 'POST', '/api/v1/projects/{project_id}/tasks/{task_id}/messages', 'body'),
  /** Retry a task. */
  retry: call('retryTask', 'POST', '/api/v1/projects/{project_id}/tasks/{task_id}/retry', 'body'),
  /** Change a task's own budget. */
  updateBudget: call('updateTaskBudget', 'PUT', '/api/v1/projects/{project_id}/tasks/{task_id}/budget', 'body'),
}

export const testCases = {
  /** Create a test case. */
  create: call('createTestCase', 'POST', '/api/v1/projects/{project_id}/agents/{agent_id}/test-cases', 'body'),
  /** List test cases. */
  list: list('listTestCases', 'GET', '/api/v1/projects/{project_id}/agents/{agent_id}/test-cases', 'test_cases'),
  /** Read a test case. */
  get: call('getTestCase', 'GET', '/api/v1/projects/{project_id}/agents/{agent_id}/test-cases/{test_case_id}'),
  /** Change a test case. */
  update: call(
    'updateTestCase',
    'PUT',
    '/api/v1/projects/{project_id}/agents/{agent_id}/test-cases/{test_case_id}',
    'body',
  ),
  /** Delete a test case. */
  delete: call('deleteTestCase', 'DELETE', '/api/v1/projects/{project_id}/agents/{agent_id}/test-cases/{test_case_id}'),
}

export const threads = {
  /** Create a thread. */
  create: call('createThread', 'POST', '/api/v1/projects/{project_id}/threads', 'body'),
  /** List threads. */
  list: list('listThreads', 'GET', '/api/v1/projects/{project_id}/threads', 'threads'),
  /** Read a thread. */
  get: call('getThread', 'GET', '/api/v1/projects/{project_id}/threads/{thread_id}'),
  /** Delete a thread. */
  delete: call('deleteThread', 'DELETE', '/api/v1/projects/{project_id}/threads/{thread_id}'),
  /** Read a thread's messages. */
  messages: list('listThreadMessages', 'GET', '/api/v1/projects/{project_id}/threads/{thread_id}/messages', 'messages'),
}

export const toolCalls = {
  /** Claim a tool call. */
  claim: once('claimToolCall', 'POST', '/api/v1/projects/{project_id}/tool-calls/claim', 'body'),
  /** List tool calls. */
  list: list('listToolCalls', 'GET', '/api/v1/projects/{project_id}/tool-calls', 'tool_calls'),
  /** Read a tool call. */
  get: call('getToolCall', 'GET', '/api/v1/projects/{project_id}/tool-calls/{tool_call_id}'),
  /** Extend a lease. */
  heartbeat: once(
    'extendToolCall',
    'POST',
    '/api/v1/projects/{project_id}/tool-calls/{tool_call_id}/heartbeat',
    'body',
  ),
  /** Resolve a tool call. */
  resolve: call('resolveToolCall', 'POST', '/api/v1/projects/{project_id}/tool-calls/{tool_call_id}/result', 'body'),
}

export const tools = {
  /** Read the statistics of several tools. */
  statistics: call('listToolStatistics', 'GET', '/api/v1/projects/{project_id}/tools/statistics', 'query'),
  /** Preview the tools of a server or document. */
  preview: once('previewTool', 'POST', '/api/v1/projects/{project_id}/tools/preview', 'body'),
  /** Try a tool. */
  try: once('tryTool', 'POST', '/api/v1/projects/{project_id}/tools/try', 'body'),
  /** Register a tool. */
  create: once('createTool', 'POST', '/api/v1/projects/{project_id}/tools', 'body'),
  /** List tools. */
  list: list('listTools', 'GET', '/api/v1/projects/{project_id}/tools', 'tools'),
  /** Read a tool. */
  get: call('getTool', 'GET', '/api/v1/projects/{project_id}/tools/{tool_id}'),
  /** Update a tool. */
  update: call('updateTool', 'PUT', '/api/v1/projects/{project_id}/tools/{tool_id}', 'body'),
  /** Approve a tool's definitions. */
  approve: once('approveTool', 'POST', '/api/v1/projects/{project_id}/tools/{tool_id}/approve', 'body'),
  /** Delete a tool. */
  delete: call('deleteTool', 'DELETE', '/api/v1/projects/{project_id}/tools/{tool_id}'),
}

export const triggers = {
  /** List triggers. */
  list: list('listTriggers', 'GET', '/api/v1/projects/{project_id}/triggers', 'triggers'),
  /** Create a trigger. */
  create: call('createTrigger', 'POST', '/api/v1/projects/{project_id}/triggers', 'body'),
  /** Read a trigger. */
  get: call('getTrigger', 'GET', '/api/v1/projects/{project_id}/triggers/{trigger_id}'),
  /** Update a trigger. */
  update: call('updateTrigger', 'PUT', '/api/v1/projects/{project_id}/triggers/{trigger_id}', 'body'),
  /** Delete a trigger. */
  delete: call('deleteTrigger', 'DELETE', '/api/v1/projects/{project_id}/triggers/{trigger_id}'),
  /** Pause a trigger. */
  pause: call('pauseTrigger', 'POST', '/api/v1/projects/{project_id}/triggers/{trigger_id}/pause'),
  /** Resume a trigger. */
  resume: call('resumeTrigger', 'POST', '/api/v1/projects/{project_id}/triggers/{trigger_id}/resume'),
  /** Rotate the address and the secret of a trigger. */
  rotate: call('rotateTrigger', 'POST', '/api/v1/projects/{project_id}/triggers/{trigger_id}/rotate', 'body'),
  /** Test a trigger. */
  test: call('testTrigger', 'POST', '/api/v1/projects/{project_id}/triggers/{trigger_id}/test', 'body'),
  /** List deliveries of a trigger. */
  listDeliveries: list(
    'listTriggerDeliveries',
    'GET',
    '/api/v1/projects/{project_id}/triggers/{trigger_id}/deliveries',
    'deliveries',
  ),
  /** Read a delivery of a trigger. */
  getDelivery: call(
    'getTriggerDelivery',
    'GET',
    '/api/v1/projects/{project_id}/triggers/{trigger_id}/deliveries/{delivery_id}',
  ),
  /** Replay a delivery. */
  replay: call(
    'replayTriggerDelivery',
    'POST',
    '/api/v1/projects/{project_id}/triggers/{trigger_id}/deliveries/{delivery_id}/replay',
  ),
}

export const usage = {
  /** Read usage and cost. The entries are groups; the body of a page has their total. */
  get: list('getUsage', 'GET', '/api/v1/projects/{project_id}/usage', 'usage'),
  /** Read usage over time. */
  series: call('getUsageSeries', 'GET', '/api/v1/projects/{project_id}/usage/series', 'query'),
}

export const user = {
  /** Read the current user. */
  get: call('getUser', 'GET', '/api/v1/auth/user'),
  /** Update the current user. */
  update: call('updateUser', 'PUT', '/api/v1/auth/user', 'body'),
  /** Read what the credential may do. */
  permissions: call('getPermissions', 'GET', '/api/v1/auth/permissions'),
  /** Sign in. */
  login: once('login', 'POST', '/api/v1/auth/login', 'body'),
  /** Sign out. */
  logout: once('logout', 'POST', '/api/v1/auth/logout'),
  /** Create an account. */
  signup: once('signup', 'POST', '/api/v1/auth/signup', 'body'),
  /** Change the password. */
  changePassword: call('changePassword', 'PUT', '/api/v1/auth/password', 'body'),
  /** Read the preferences of the current user. */
  preferences: call('getPreferences', 'GET', '/api/v1/auth/preferences'),
  /** Change the preferences of the current user. */
  updatePreferences: call('updatePreferences', 'PUT', '/api/v1/auth/preferences', 'body'),
  /** Read the limits and their usage. */
  limits: call('getRateLimits', 'GET', '/api/v1/auth/limits'),
  /** List requests that limits refused. */
  refusals: list('listRateLimitRefusals', 'GET', '/api/v1/auth/limits/refusals', 'refusals'),
}

export const webhooks = {
  /** Register a webhook. */
  create: call('createWebhook', 'POST', '/api/v1/webhooks', 'body'),
  /** List webhooks. */
  list: list('listWebhooks', 'GET', '/api/v1/webhooks', 'webhooks'),
  /** Read a webhook. */
  get: call('getWebhook', 'GET', '/api/v1/webhooks/{webhook_id}'),
  /** Update a webhook. */
  update: call('updateWebhook', 'PUT', '/api/v1/webhooks/{webhook_id}', 'body'),
  /** Delete a webhook. */
  delete: call('deleteWebhook', 'DELETE', '/api/v1/webhooks/{webhook_id}'),
  /** Rotate the secret of a webhook. */
  rotateSecret: call('rotateWebhookSecret', 'POST', '/api/v1/webhooks/{webhook_id}/rotate-secret', 'body'),
  /** Test a webhook. */
  test: call('testWebhook', 'POST', '/api/v1/webhooks/{webhook_id}/test', 'body'),
  /** List deliveries of a webhook. */
  listDeliveries: list('listDeliveries', 'GET', '/api/v1/webhooks/{webhook_id}/deliveries', 'deliveries'),
  /** Read a delivery. */
  getDelivery: call('getDelivery', 'GET', '/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}'),
  /** Redeliver a delivery. */
  redeliver: call('redeliverDelivery', 'POST', '/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver'),
  /** Recover failed deliveries. */
  recover: call('recoverDeliveries', 'POST', '/api/v1/webhooks/{webhook_id}/recover', 'body'),
}

export const work = {
  /** Claim a task. */
  claim: once('claimWork', 'POST', '/api/v1/projects/{project_id}/work/claim', 'body'),
  /** Extend a lease. */
  heartbeat: once('heartbeatWork', 'POST', '/api/v1/projects/{project_id}/work/heartbeat', 'body'),
  /** Start a step. */
  beginStep: once('beginWorkStep', 'POST', '/api/v1/projects/{project_id}/work/steps', 'body'),
  /** Finish a step. */
  finishStep: once('finishWorkStep', 'POST', '/api/v1/projects/{project_id}/work/steps/{step_id}/finish', 'body'),
  /** Publish events. */
  events: once('recordWorkEvents', 'POST', '/api/v1/projects/{project_id}/work/events', 'body'),
  /** Complete the task. */
  complete: once('completeWork', 'POST', '/api/v1/projects/{project_id}/work/complete', 'body'),
  /** Fail the task. */
  fail: once('failWork', 'POST', '/api/v1/projects/{project_id}/work/fail', 'body'),
  /** Park the task. */
  park: once('parkWork', 'POST', '/api/v1/projects/{project_id}/work/park', 'body'),
}

/** The resources of a client, by their names. */
export class Resources {
  readonly agents: Bound<typeof agents>
  readonly apiKeys: Bound<typeof apiKeys>
  readonly approvals: Bound<typeof approvals>
  readonly audit: Bound<typeof audit>
  readonly budgets: Bound<typeof budgets>
  readonly credentials: Bound<typeof credentials>
  readonly files: Bound<typeof files>
  readonly invitations: Bound<typeof invitations>
  readonly members: Bound<typeof members>
  readonly modelProviders: Bound<typeof modelProviders>
  readonly oauth: Bound<typeof oauth>
  readonly organization: Bound<typeof organization>
  readonly projects: Bound<typeof projects>
  readonly schedules: Bound<typeof schedules>
  readonly service: Bound<typeof service>
  readonly sessions: Bound<typeof sessions>
  readonly sso: Bound<typeof sso>
  readonly tasks: Bound<typeof tasks>
  readonly testCases: Bound<typeof testCases>
  readonly threads: Bound<typeof threads>
  readonly toolCalls: Bound<typeof toolCalls>
  readonly tools: Bound<typeof tools>
  readonly triggers: Bound<typeof triggers>
  readonly usage: Bound<typeof usage>
  readonly user: Bound<typeof user>
  readonly webhooks: Bound<typeof webhooks>
  readonly work: Bound<typeof work>

  constructor(http: Http) {
    this.agents = bind(http, agents)
    this.apiKeys = bind(http, apiKeys)
    this.approvals = bind(http, approvals)
    this.audit = bind(http, audit)
    this.budgets = bind(http, budgets)
    this.credentials = bind(http, credentials)
    this.files = bind(http, files)
    this.invitations = bind(http, invitations)
    this.members = bind(http, members)
    this.modelProviders = bind(http, modelProviders)
    this.oauth = bind(http, oauth)
    this.organization = bind(http, organization)
    this.projects = bind(http, projects)
    this.schedules = bind(http, schedules)
    this.service = bind(http, service)
    this.sessions = bind(http, sessions)
    this.sso = bind(http, sso)
    this.tasks = bind(http, tasks)
    this.testCases = bind(http, testCases)
    this.threads = bind(http, threads)
    this.toolCalls = bind(http, toolCalls)
    this.tools = bind(http, tools)
    this.triggers = bind(http, triggers)
    this.usage = bind(http, usage)
    this.user = bind(http, user)
    this.webhooks = bind(http, webhooks)
    this.work = bind(http, work)
  }
}

/** The resources of one project: their methods without the first argument. */
export function resourcesOfProject(project_id: string | number, all: Resources) {
  return {
    approvals: inProject(project_id, all.approvals),
    budgets: inProject(project_id, all.budgets),
    files: inProject(project_id, all.files),
    schedules: inProject(project_id, all.schedules),
    tasks: inProject(project_id, all.tasks),
    testCases: inProject(project_id, all.testCases),
    threads: inProject(project_id, all.threads),
    toolCalls: inProject(project_id, all.toolCalls),
    tools: inProject(project_id, all.tools),
    triggers: inProject(project_id, all.triggers),
    usage: inProject(project_id, all.usage),
    work: inProject(project_id, all.work),
  }
}
