import type { Static, TSchema } from 'typebox'
import type { BodyOf, QueryOf } from '../../contract/src/core/operation.ts'
import type { Modules } from './generated/contract-operations.ts'

export type { AgentState } from '../../contract/src/resources/agent-lifecycle.ts'
export type { EventData } from '../../contract/src/events/event-payloads.ts'
export type { OutboxEventName } from '../../contract/src/events/events.ts'
export type { Issue } from '../../contract/src/core/problems.ts'
export type { LiveEventType, TaskEventType, TaskState } from '../../contract/src/tasks/task-lifecycle.ts'

/**
 * The types of the contract that the SDK uses; types only, so that none of its code is in a program. In the package, generated
 * types replace this file.
 */
export type Operations = { [O in DeclaredIn<Modules[number]> as O['id']]: Shape<O> }

interface Declared {
  id: string
  method: string
  path: string
  responses: readonly unknown[]
}

/** The exports of modules that are operations. */
type DeclaredIn<Module> = Module extends unknown ? Extract<Module[keyof Module], Declared> : never

interface Shape<O extends Declared> {
  method: O['method']
  path: O['path']
  /** `never` without one. */
  query: QueryOf<O>
  body: BodyOf<O>
  body_optional: O extends { body_optional: true } ? true : false
  /** `never` if no response is JSON. */
  result: Result<O['responses'][number]>
}

type Result<Response> = Response extends { schema: infer Schema extends TSchema } ? Static<Schema> : never
