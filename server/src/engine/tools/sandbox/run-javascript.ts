import { builtinToolDefinitions, javascriptFiles, javascriptTime_seconds } from '#contract/tools/builtin-tools.ts'
import { fileBounds } from '#contract/resources/files.ts'
import { requireCallFile } from '../builtin/task-files.ts'
import { TooManyWait } from '../../../platform/fair-turns.ts'
import type { SandboxHost, Sandboxes, SandboxOptions } from './sandbox.ts'
import type { SandboxResult } from './sandbox-job.ts'
import { ToolError, type CallFiles, type KnownFile, type Tool, type ToolAnswer } from '../tool.ts'

/**
 * Runs JavaScript in a sandbox without network, file system, timers or modules. The agent's environment variables are
 * available as `env`; their values in the answer are redacted, as everywhere. `files` reads files of the project and
 * saves artifacts.
 */
export function runJavascript(sandboxes: Sandboxes, env: Readonly<Record<string, string>>): Tool {
  return {
    name: 'run_javascript',
    ...builtinToolDefinitions.run_javascript,
    async call({ code, timeout_seconds = javascriptTime_seconds.usual }, { signal, files, party, allowance }) {
      const timeout_ms = Math.min(Number(timeout_seconds), javascriptTime_seconds.max) * 1000
      const saved: KnownFile[] = []
      const grant = allowance?.()
      let allowed_ms = timeout_ms
      const options: SandboxOptions = {
        signal,
        party,
        host: files && fileHost(files, saved),
        allow: async (wanted_ms) => (allowed_ms = grant ? (await grant.take(wanted_ms / 1000)) * 1000 : wanted_ms),
        ended: grant && ((seconds) => grant.settle(seconds)),
      }
      const result = await sandboxes.run({ code: String(code), env, timeout_ms }, options).catch(asToolError)
      return {
        ...answer(result, allowed_ms / 1000),
        sandbox_seconds: result.seconds,
        ...(saved.length > 0 ? { artifacts: [...saved] } : {}),
      }
    },
  }
}

/** A full queue is an error for the model: it may call again later, or do without. */
function asToolError(error: unknown): never {
  if (!(error instanceof TooManyWait)) throw error
  throw new ToolError('sandbox_busy', `The program was not run: ${error.message} for the sandbox. Try again later.`, {
    cause: error,
  })
}

/** Handles a program's `files.read` and `files.save`; adds saved files to `saved`, in order. */
function fileHost(files: CallFiles, saved: KnownFile[]): SandboxHost {
  return async (request) => {
    try {
      if (request.ask === 'read') {
        const file = await requireCallFile(files, request.file_id)
        return { bytes: await files.read(file, 0, file.bytes) }
      }
      const { name, content, media_type: declared } = request
      if (saved.length >= javascriptFiles) return { error: `A program may save at most ${javascriptFiles} files.` }
      const bytes = typeof content === 'string' ? Buffer.from(content) : Buffer.from(content.buffer)
      if (bytes.length > fileBounds.bytes) return { error: `The file is larger than ${fileBounds.bytes} bytes.` }
      const file = await files.save({ name, declared, content: bytes }, saved.length, true)
      saved.push(file)
      return { file_id: file.id }
    } catch (error) {
      return { error: error instanceof ToolError ? error.message : 'The file could not be read or saved.' }
    }
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
