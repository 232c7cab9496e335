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

/** The functions of one kind of tool. The definition was validated against the kind's schema before. */
interface Kind<Name extends ToolKind> {
  /** The tools of a row that an agent may call. */
  open(row: ToolRow, opening: Opening): OpenedTools
  /**
   * Finds the tools of a definition and pins them, so that an agent can call only what a person registered. Left out
   * for a kind with a single tool. Waits for the network, so it must not be called inside a transaction.
   * @throws `validation_error` with the field
   */
  pin?(definition: ToolDefinition<Name>, row: Pick<ToolRow, 'name' | 'safety'>, pinning: Pinning): Promise<PinnedTool[]>
  /** Whether the arguments' schema is registered with the tool; tools of other kinds have their own. */
  takesParameters?: boolean
  /** Checks of a definition beyond its schema. */
  check?(definition: ToolDefinition<Name>): Issue[]
  /** The safety of a tool that was registered without one; null if each pinned tool has its own. */
  safetyOf(definition: ToolDefinition<Name>): ToolSafety | null
}

/** The kinds of tools. A new one needs a schema in the contract, a folder here and an entry in this list. */
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

/** A kind for definitions of unknown type, as rows have them. */
export function kindOf(kind: ToolKind): Kind<ToolKind> {
  return kinds[kind]
}
