import type { McpDefinition, OpenApiDefinition, ToolKind } from '#contract/resources/tools.ts'
import { pinMcp } from './mcp/mcp.ts'
import { pinOpenapi } from './openapi/openapi.ts'
import type { Pinning } from './opened.ts'
import type { PinnedTool, ToolRow } from './tool-rows.ts'

/**
 * Finds the tools behind a definition, so that what an agent may call is what a person registered; null for kinds that
 * are one tool. Waits for the network: never inside a transaction. Throws the problem `validation_error` with the field.
 */
export async function pinDefinitions(
  kind: ToolKind,
  definition: unknown,
  row: Pick<ToolRow, 'name' | 'safety'>,
  pinning: Pinning,
): Promise<PinnedTool[] | null> {
  // The definition was checked against the schema of its kind before.
  if (kind === 'openapi') return pinOpenapi(definition as OpenApiDefinition, row, pinning)
  if (kind === 'mcp') return pinMcp(definition as McpDefinition, row, pinning)
  return null
}
