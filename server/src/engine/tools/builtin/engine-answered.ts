import { builtinToolDefinitions } from '#contract/tools/builtin-tools.ts'
import { ToolError, type Tool } from '../tool.ts'

/** Tools that the engine answers itself, because they make the task wait. */
export const engineAnswered: readonly Tool[] = (['wait', 'request_input'] as const).map((name) => ({
  name,
  ...builtinToolDefinitions[name],
  call: neverCalled,
}))

/** Reached only through a bug. */
async function neverCalled(): Promise<never> {
  throw new ToolError('not_callable', 'This tool is answered by the service itself.')
}
