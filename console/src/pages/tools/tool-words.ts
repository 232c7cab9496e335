import type { ToolKind } from '#contract/tools/tools.ts'
import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'

/** Kinds of tools as people know them, and what each is for. */
export const kindNames: Record<ToolKind, string> = {
  http: 'HTTP request',
  openapi: 'OpenAPI',
  mcp: 'MCP server',
  client: 'Your process',
}

export const kindLeads: Record<ToolKind, string> = {
  http: 'One request to one address. The model fills in the arguments.',
  openapi: 'Operations of an API, read from its OpenAPI document.',
  mcp: 'The tools of a server that speaks the Model Context Protocol.',
  client: 'A function in your own code. Your process claims calls and returns results.',
}

/** What a safety means for a person. */
export const safetyWords: Record<ToolSafety, string> = {
  safe: 'Changes nothing. A call is repeated after a crash.',
  keyed: 'The receiver recognizes repeated calls by their key. A call is repeated after a crash.',
  unsafe: 'May change something. After a crash in the middle of a call, a person is asked.',
}

export const safetyTones = { safe: 'good', keyed: 'info', unsafe: 'warn' } as const
