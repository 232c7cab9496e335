import { call, list, once, raw, upload } from '../operation.ts'

const one = '/api/v1/projects/{project_id}'

export const projectMethods = {
  /** Create a project. */
  create: call('createProject', 'POST', '/api/v1/projects', 'body'),
  /** List projects. */
  list: list('listProjects', 'GET', '/api/v1/projects', 'projects'),
  /** Read the statistics of several projects. */
  statistics: call('listProjectStatistics', 'GET', '/api/v1/projects/statistics', 'query'),
  /** Read a project. */
  get: call('getProject', 'GET', one),
  /** Rename a project. */
  update: call('updateProject', 'PUT', one, 'body'),
  /** Delete a project. */
  delete: call('deleteProject', 'DELETE', one),
  /** Read the logs of a project's agents. */
  logs: list('listProjectLogs', 'GET', `${one}/logs`, 'logs'),
  /** Stream a project, as it comes over the line; `stream` reads it. */
  rawStream: raw('streamProjectEvents', 'GET', `${one}/events/stream`),
}

const file = `${one}/files/{file_id}` as const

export const fileMethods = {
  /** Upload a file: a `Blob`, bytes, a stream or text; a `Blob` with a name keeps it with `{ name: file.name }`. */
  upload: upload('createFile', 'POST', `${one}/files`),
  /** List files. */
  list: list('listFiles', 'GET', `${one}/files`, 'files'),
  /** Read what is known of a file. */
  get: call('getFile', 'GET', file),
  /** Download a file: its response, to be read as it comes, or whole by `blob()`. */
  content: raw('getFileContent', 'GET', `${file}/content`),
  /** Delete a file. */
  delete: call('deleteFile', 'DELETE', file, 'query'),
}

export const usageMethods = {
  /** Read what was used and what it cost: groups are the entries; their sum is in the body of a page. */
  get: list('getUsage', 'GET', `${one}/usage`, 'usage'),
}

export const budgetMethods = {
  /** Set a budget. */
  create: call('createBudget', 'POST', `${one}/budgets`, 'body'),
  /** List budgets. */
  list: list('listBudgets', 'GET', `${one}/budgets`, 'budgets'),
  /** Read a budget. */
  get: call('getBudget', 'GET', `${one}/budgets/{budget_id}`),
  /** Change a budget. */
  update: call('updateBudget', 'PUT', `${one}/budgets/{budget_id}`, 'body'),
  /** Delete a budget. */
  delete: call('deleteBudget', 'DELETE', `${one}/budgets/{budget_id}`),
}

export const toolMethods = {
  /** Register a tool. */
  create: once('createTool', 'POST', `${one}/tools`, 'body'),
  /** List tools. */
  list: list('listTools', 'GET', `${one}/tools`, 'tools'),
  /** Read a tool. */
  get: call('getTool', 'GET', `${one}/tools/{tool_id}`),
  /** Update a tool. */
  update: call('updateTool', 'PUT', `${one}/tools/{tool_id}`, 'body'),
  /** Approve a tool's definitions. */
  approve: once('approveTool', 'POST', `${one}/tools/{tool_id}/approve`, 'body'),
  /** Delete a tool. */
  delete: call('deleteTool', 'DELETE', `${one}/tools/{tool_id}`),
}

export const credentialMethods = {
  /** Keep a credential. */
  create: call('createCredential', 'POST', `${one}/credentials`, 'body'),
  /** List credentials. */
  list: list('listCredentials', 'GET', `${one}/credentials`, 'credentials'),
  /** Read a credential: its name and kind, never its secret. */
  get: call('getCredential', 'GET', `${one}/credentials/{credential_id}`),
  /** Replace a credential. */
  update: call('updateCredential', 'PUT', `${one}/credentials/{credential_id}`, 'body'),
  /** Delete a credential. */
  delete: call('deleteCredential', 'DELETE', `${one}/credentials/{credential_id}`),
}
