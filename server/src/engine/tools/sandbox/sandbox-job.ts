import type { MessagePort } from 'node:worker_threads'

/** What a sandbox is asked to run. Goes to its thread as it is. */
export interface SandboxJob {
  code: string
  env: Readonly<Record<string, string>>
  /** From the moment in which the code begins. */
  timeout_ms: number
}

/** What a program asks its host for: the bytes of a file, or to keep one. The thread waits for the answer. */
export type SandboxRequest =
  | { ask: 'read'; file_id: string }
  | { ask: 'save'; name: string; content: string | Uint8Array; media_type: string | undefined }

/** What the host answers: bytes, the id of a file, or what is wrong. */
export type SandboxReply = { bytes: Uint8Array } | { file_id: string } | { error: string }

/** What a thread is sent, once. */
export interface SandboxThread {
  job: SandboxJob
  /** From the moment in which the code begins until it goes on behind other work of the machine. */
  short_ms: number
  /** Where its requests go and their answers come from; without it there are no files. */
  host?: { port: MessagePort; answered: Int32Array }
}

/** How a program ended. `logs` is what it had written to its console, in the order of writing. */
export interface SandboxResult {
  outcome: 'value' | 'error'
  /** The value as text, or what went wrong. */
  text: string
  /** Why it ended badly where that is no mistake in the program. */
  limit?: 'time' | 'memory' | 'crash'
  logs: string
  /** How long the code ran, by the clock; 0 where it never began. */
  seconds: number
}

/** Characters of a value, and of all that is written to the console. */
export const sandboxTextMax = 50_000
