import type { MessagePort } from 'node:worker_threads'

/** A program for a sandbox, as sent to its thread. */
export interface SandboxJob {
  code: string
  env: Readonly<Record<string, string>>
  /** From the start of the code. */
  timeout_ms: number
}

/** A program's request to its host: to read a file, or to save one. The thread waits for the reply. */
export type SandboxRequest =
  | { ask: 'read'; file_id: string }
  | { ask: 'save'; name: string; content: string | Uint8Array; media_type: string | undefined }

/** The host's reply: bytes, the id of a file, or an error. */
export type SandboxReply = { bytes: Uint8Array } | { file_id: string } | { error: string }

/** The one message to a thread. */
export interface SandboxThread {
  job: SandboxJob
  /** Time from the start of the code until the thread lowers its priority. */
  short_ms: number
  /** Its channel to the host; without it, there are no files. */
  host?: { port: MessagePort; answered: Int32Array }
}

/** The result of a program. `logs` is what it wrote to its console, in order. */
export interface SandboxResult {
  outcome: 'value' | 'error'
  /** The value as text, or the error. */
  text: string
  /** The bound that ended the program; undefined for an error in the program. */
  limit?: 'time' | 'memory' | 'crash'
  logs: string
  /** Run time of the code by the clock; 0 if it never started. */
  seconds: number
}

/** Maximum characters of a value, and of the whole console. */
export const sandboxTextMax = 50_000
