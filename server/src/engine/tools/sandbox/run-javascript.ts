import { builtinToolDefinitions, javascriptTime_seconds } from '#contract/resources/builtin-tools.ts'
import type { Sandboxes } from './sandbox.ts'
import type { SandboxResult } from './sandbox-job.ts'
import type { Tool, ToolAnswer } from '../tool.ts'

/**
 * Runs JavaScript in a sandbox without network, files, timers or modules. Agents find their environment variables there
 * as `env`; values of them in the answer are redacted, as everywhere.
 */
export function runJavascript(sandboxes: Sandboxes, env: Readonly<Record<string, string>>): Tool {
  return {
    name: 'run_javascript',
    ...builtinToolDefinitions.run_javascript,
    async call({ code, timeout_seconds = javascriptTime_seconds.usual }, { signal }) {
      const timeout_ms = Math.min(Number(timeout_seconds), javascriptTime_seconds.max) * 1000
      return answer(await sandboxes.run({ code: String(code), env, timeout_ms }, signal), timeout_ms / 1000)
    },
  }
}

function answer({ outcome, text, limit, logs }: SandboxResult, seconds: number): ToolAnswer {
  const console = logs === '' ? '' : `console:\n${logs}\n`
  if (outcome === 'value') return { content: console === '' ? text : `${console}result:\n${text}` }
  const codes = { time: 'timed_out', memory: 'out_of_memory', crash: 'sandbox_crashed' } as const
  const message = limit === 'time' ? `The program took longer than ${seconds} seconds and was ended.` : text
  return {
    content: `${console}error:\n${message}`,
    error: { code: limit === undefined ? 'javascript_error' : codes[limit], message: message.slice(0, 500) },
  }
}
