import { randomUUID } from 'node:crypto'
import { isObject } from '#contract/core/merge-patch.ts'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import type { Context } from '../../context.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import { formTokens } from '../../http/pages/form-token.ts'
import type { AskedUser, McpCall } from './mcp-call.ts'
import { asksByForm, openQuestions, takeAnswers, type OpenQuestion } from './settle.ts'
import { waitForTask } from './waiting.ts'

/* Questions to the user of a client of the revision 2025-11-25. There the server sends a request, `elicitation/create`, on the stream of the * call, and the client posts the response as a message. The service stores nothing for it:
 * - A client declares only in `initialize` whether it can ask its user. The response assigns a session id that contains this fact, and the * client sends that id with every later request. The id is not signed, because a forged one only concerns its own client.
 * - The id of a question contains the task and the question, signed for the user. So any process can accept the answer, also after the * call has ended with a handle.
 */

const prefix = 'elicitation-form.'

/**
 * The session id for an `initialize` of a client that can show forms to its user; undefined for any other message.
 */
export function sessionFor(message: unknown): string | undefined {
  if (!isObject(message) || message['method'] !== 'initialize' || !isObject(message['params'])) return undefined
  const { capabilities } = message['params']
  return isObject(capabilities) && asksByForm(capabilities['elicitation']) ? `${prefix}${randomUUID()}` : undefined
}

/** Whether the client of a call can show forms to its user. */
export function canAsk({ request: { headers } }: McpCall): boolean {
  const id = headers['mcp-session-id']
  return typeof id === 'string' && id.startsWith(prefix)
}

export function askedUser({ secrets, engine }: Pick<Context, 'secrets' | 'engine'>): AskedUser {
  const tokens = formTokens(secrets)
  /** Callbacks of waiting calls of this process, by the id of their question. */
  const waiting = new Map<string, () => void>()
  // Any process may receive the answer; the process with the waiting call ends the wait.
  engine.bus.on('declined', (id) => waiting.get(id)?.())
  const boundTo = ({ principal }: McpCall, task_id: string, name: string): [string, ...string[]] => [
    ...(['mcp elicitation', task_id, name, principal.org_id, principal.user_id] as const),
  ]

  return {
    async follow(call, key, task, { ends_at, signal, progress }) {
      const declined = new AbortController()
      const asked = new Map<string, OpenQuestion>()
      const over = AbortSignal.any([signal, declined.signal])
      let current: TaskRow | undefined = task
      try {
        for (;;) {
          if (!current || isFinished(current.status)) return current
          for (const question of await openQuestions(call, current)) {
            const id = `${key.id}.${question.key}.${tokens.issue(...boundTo(call, key.id, question.key))}`
            if (asked.has(id)) continue
            asked.set(id, question)
            waiting.set(id, () => declined.abort())
            const params = { message: question.message, requestedSchema: question.schema }
            call.push({ jsonrpc: '2.0', id, method: 'elicitation/create', params })
          }
          const seconds = (ends_at - performance.now()) / 1000
          if (asked.size === 0 || seconds <= 0 || over.aborted) return current
          const after = current.last_sequence
          current = await waitForTask(call, key, { seconds, signal: over, progress, after })
        }
      } finally {
        for (const id of asked.keys()) waiting.delete(id)
      }
    },

    async take(call, message, findTask) {
      if (!isObject(message) || 'method' in message || typeof message['id'] !== 'string') return false
      const { id, result } = message
      const [task_id = '', name = '', token] = id.split('.')
      if (!tokens.verify(token, ...boundTo(call, task_id, name))) return false
      const key = await findTask(task_id)
      await takeAnswers(call, key, { [name]: result })
      if (!isObject(result) || result['action'] !== 'accept') engine.bus.notify('declined', id)
      return true
    },
  }
}
