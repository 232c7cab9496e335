import type { Sandboxes } from './sandbox.ts'
import type { SandboxResult } from './sandbox-job.ts'
import type { Tool, ToolAnswer } from './tool.ts'

const timeoutDefault_seconds = 10
const timeoutMax_seconds = 60

/**
 * Runs JavaScript in a sandbox without network, files, timers or modules. Agents find their environment variables there
 * as `env`; values of them in the answer are redacted, as everywhere.
 */
export function runJavascript(sandboxes: Sandboxes, env: Readonly<Record<string, string>>): Tool {
  return {
    name: 'run_javascript',
    description:
      'Runs JavaScript (ES2023) and gives the value of its last expression; with `return` or `await` at the top, what it returns. ' +
      'Also gives what was written by console.log. Promises are awaited. There are no network, files, timers or modules. ' +
      'Environment variables are in `env`.',
    parameters: {
      type: 'object',
      properties: {
        code: { type: 'string', minLength: 1, maxLength: 100_000, description: 'The program.' },
        timeout_seconds: {
          type: 'number',
          minimum: 0.1,
          maximum: timeoutMax_seconds,
          description: `${timeoutDefault_seconds} where nothing is said.`,
        },
      },
      required: ['code'],
      additionalProperties: false,
    },
    // It has no effects outside of itself.
    safety: 'safe',
    async call({ code, timeout_seconds = timeoutDefault_seconds }, { signal }) {
      const timeout_ms = Math.min(Number(timeout_seconds), timeoutMax_seconds) * 1000
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
