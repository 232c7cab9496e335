import type { Static, TSchema } from 'typebox'
import type { BodyOf, QueryOf } from '../../contract/src/core/operation.ts'
import type { Modules } from './generated/contract-operations.ts'

export type { AgentState } from '../../contract/src/resources/agent-lifecycle.ts'
export type { EventData } from '../../contract/src/events/event-payloads.ts'
export type { OutboxEventName } from '../../contract/src/events/events.ts'
export type { Issue } from '../../contract/src/core/problems.ts'
export type { LiveEventType, TaskEventType, TaskState } from '../../contract/src/tasks/task-lifecycle.ts'

/**
 * What the SDK knows of the contract: types alone, so that nothing of it is in a program. The package has them written out
 * in the place of this file.
 */
export type Operations = { [O in DeclaredIn<Modules[number]> as O['id']]: Shape<O> }

interface Declared {
  id: string
  method: string
  path: string
  responses: readonly unknown[]
}

/** The operations among what modules export. */
type DeclaredIn<Module> = Module extends unknown ? Extract<Module[keyof Module], Declared> : never

interface Shape<O extends Declared> {
  method: O['method']
  path: O['path']
  /** `never` where there is none. */
  query: QueryOf<O>
  body: BodyOf<O>
  body_optional: O extends { body_optional: true } ? true : false
  /** `never` where no answer is JSON. */
  result: Result<O['responses'][number]>
}

type Result<Response> = Response extends { schema: infer Schema extends TSchema } ? Static<Schema> : never
