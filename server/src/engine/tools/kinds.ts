import type { Issue } from '#contract/core/problems.ts'
import type { ToolDefinition, ToolKind } from '#contract/tools/tools.ts'
import { clientSafety, clientTool } from './client/client-tools.ts'
import { resultSchemaIssues } from './data-schema.ts'
import { httpTool } from './http/http-tool.ts'
import { mcpTools, pinMcp } from './mcp/mcp.ts'
import type { OpenedTools, Opening, Pinning } from './opened.ts'
import { openapiTools, pinOpenapi } from './openapi/openapi.ts'
import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'
import type { PinnedTool, ToolRow } from './tool-rows.ts'

/** How the service handles tools of one kind. The definition was checked against the kind's schema before. */
interface Kind<Name extends ToolKind> {
  /** The tools of a row that an agent may call. */
  open(row: ToolRow, opening: Opening): OpenedTools
  /**
   * Finds the tools behind a definition, so that what an agent may call is what a person registered. Absent for a kind
   * that is one tool. Waits for the network: never inside a transaction. Throws the problem `validation_error` with the field.
   */
  pin?(definition: ToolDefinition<Name>, row: Pick<ToolRow, 'name' | 'safety'>, pinning: Pinning): Promise<PinnedTool[]>
  /** Whether the arguments' schema is registered with the tool; tools of other kinds bring their own. */
  takesParameters?: boolean
  /** What the schema does not say of a definition. */
  check?(definition: ToolDefinition<Name>): Issue[]
  /** The safety of a tool that was registered without one; null where each pinned tool has its own. */
  safetyOf(definition: ToolDefinition<Name>): ToolSafety | null
}

/** Every kind of tool. A new one has its schema in the contract, a folder here and an entry in this list. */
export const kinds: { readonly [Name in ToolKind]: Kind<Name> } = {
  http: {
    open: (row, opening) => ({ tools: [httpTool(row, opening)], missing: [] }),
    takesParameters: true,
    safetyOf: ({ method }) => (method === 'GET' ? 'safe' : 'unsafe'),
  },
  openapi: {
    open: openapiTools,
    pin: pinOpenapi,
    check: ({ url, document }) =>
      (url === undefined) === (document === undefined)
        ? [{ field: 'openapi', message: 'must have either document or url', code: 'required' }]
        : [],
    safetyOf: () => null,
  },
  mcp: { open: mcpTools, pin: pinMcp, safetyOf: () => null },
  client: {
    open: (row) => ({ tools: [clientTool(row)], missing: [] }),
    takesParameters: true,
    check: ({ result_schema }) => resultSchemaIssues('result_schema', result_schema),
    safetyOf: () => clientSafety,
  },
}

/** A kind whose definition is known as an object alone, as rows have it. */
export function kindOf(kind: ToolKind): Kind<ToolKind> {
  return kinds[kind]
}
