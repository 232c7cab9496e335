import { builtinToolDefinitions } from '#contract/tools/builtin-tools.ts'
import { ToolError, type Tool } from '../tool.ts'

/** Tools without a call: the engine answers them, because they make the task wait. */
export const engineAnswered: readonly Tool[] = (['wait', 'request_input'] as const).map((name) => ({
  name,
  ...builtinToolDefinitions[name],
  call: neverCalled,
}))

/** Only reached by a bug. */
async function neverCalled(): Promise<never> {
  throw new ToolError('not_callable', 'This tool is answered by the service itself.')
}
