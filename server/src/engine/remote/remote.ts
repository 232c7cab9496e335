import type { Logger } from 'pino'
import type { Bus } from '../../events/streams/streams-bus.ts'
import type { TaskEvent } from '../../events/streams/streams-hub.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import { openClaimLine } from '../dispatch/claim-line.ts'
import { leaseHash, newLeaseToken } from '../dispatch/lease-tokens.ts'
import { listOfferedQueues } from '../journal/work.queries.ts'
import type { ModelTool } from '../models/model.ts'
import type { TaskEventType } from '#contract/tasks/task-lifecycle.ts'
import type { Wait } from '../task.ts'
import { makeCalls } from './calls.ts'
import { claimWork, type ClaimedTask, type ReadClaimed, type WorkClaim } from './claims.ts'
import { completeWork, failWork, heartbeatWork, loseWork, parkWork, type Ended, type Heartbeat } from './endings.ts'
import { dropDeadHolds } from './late-holds.ts'
import { underLease, type Lease, type RemoteContext } from './lease.ts'
import { callModel, modelNamed, modelsOf, type AskedCall, type CallAnswer } from './model-calls.ts'
import { beginStep, finishStep, type AskedStep, type StepAnswer, type StepResult } from './steps.ts'
import { callTool, listTools, type ToolResult } from './tool-calls.ts'

/** Remote work: tasks that workers outside the service run under leases. */
export interface RemoteWork {
  /** Claims a task and creates the token of its lease; undefined if no task came in time. */
  claim(
    claim: WorkClaim,
    options: { wait_ms: number; signal: AbortSignal; read?: ReadClaimed },
  ): Promise<(ClaimedTask & { token: string }) | undefined>
  heartbeat(lease: Lease): Promise<Heartbeat>
  beginStep(lease: Lease, step: AskedStep): Promise<StepAnswer>
  finishStep(
    lease: Lease,
    step_id: string,
    result: StepResult,
  ): Promise<{ step_id: string; status: 'completed' | 'failed' }>
  /** Publishes events of a worker to the task's watchers; returns how many of them are stored. */
  publish(lease: Lease, events: readonly WorkerEvent[]): Promise<number>
  complete(lease: Lease, output: { content: string; data?: unknown }): Promise<Ended>
  fail(lease: Lease, error: { code: string; message: string; retryable?: boolean }): Promise<Ended>
  park(lease: Lease, why: { reason?: string | undefined; until?: string | null | undefined }): Promise<Ended>
  /** Checks that a lease holds its task. @throws `lease_lost`, `task_canceled` */
  check(lease: Lease): Promise<void>
  /** The models that a worker may call, and the one that a name means. */
  models(lease: Lease): Promise<{ names: string[]; named(name: string): string | undefined }>
  callModel(lease: Lease, asked: AskedCall): Promise<CallAnswer>
  tools(lease: Lease): Promise<ModelTool[]>
  callTool(
    lease: Lease,
    call: { name: string; args: Record<string, unknown>; signal: AbortSignal },
  ): Promise<ToolResult>
  /** Number of model and tool calls in flight here for a lease. */
  callsUnderWay(lease: Lease): number
}

/** An event that a worker publishes to the watchers of its task. */
export interface WorkerEvent {
  type: 'message.delta' | 'message'
  message_id: string
  content: string
}

/** Remote work, with what the engine needs of it. */
export interface OpenRemoteWork {
  work: RemoteWork
  /** Reads events that this process committed, and announces offers to all processes. */
  offered(events: readonly TaskEvent[]): void
  /** Takes tasks back from workers that are gone. */
  sweep(): Promise<void>
  close(): void
}

export function openRemoteWork(
  context: RemoteContext,
  { bus, log, secrets }: { bus: Bus; log: Logger; secrets: Secrets },
): OpenRemoteWork {
  const { sql } = context
  const calls = makeCalls(context)
  type Request = WorkClaim & { lease_hash: Buffer; read?: ReadClaimed | undefined }
  const line = openClaimLine<Request, ClaimedTask>({
    kind: 'work',
    bus,
    log,
    failed: 'offered tasks could not be read; retrying',
    claim: (request) => claimWork(context, request),
    nameOf: ({ queue }) => queue,
    release: async ({ task_id, attempt }, { project_id }) => {
      await parkWork(context, calls, { task_id, project_id, attempt }, {})
    },
    listOffered: (keys) => listOfferedQueues(sql, keys),
  })
  return {
    work: {
      async claim(claim, { read, ...options }) {
        const token = newLeaseToken(secrets, 'work lease')
        const claimed = await line.claim({ ...claim, read, lease_hash: leaseHash(token) }, options)
        return claimed && { ...claimed, token }
      },
      heartbeat: (lease) => heartbeatWork(context, lease),
      beginStep: (lease, step) => beginStep(context, lease, step),
      finishStep: (lease, step_id, result) => finishStep(context, lease, step_id, result),
      publish: (lease, events) => publishEvents(context, lease, events),
      complete: (lease, output) => completeWork(context, lease, output),
      fail: (lease, error) => failWork(context, calls, lease, error),
      park: (lease, why) => parkWork(context, calls, lease, why),
      check: (lease) => underLease(context, lease, {}, async () => ({ result: undefined })),
      async models(lease) {
        const run = await underLease(context, lease, {}, async (held) => ({ result: held.run }))
        return { names: modelsOf(run), named: (name) => modelNamed(run, name) }
      },
      callModel: (lease, asked) => callModel(context, calls, lease, asked),
      tools: (lease) => listTools(context, lease),
      callTool: (lease, call) => callTool(context, calls, lease, call),
      callsUnderWay: (lease) => calls.count(lease),
    },
    offered(events) {
      for (const { type, data } of events) {
        const { queue } = type === 'task.waiting' ? (data['wait'] as Wait) : {}
        if (queue !== undefined) line.offered([queue])
      }
    },
    async sweep() {
      while (await loseWork(context, calls)) continue
      await dropDeadHolds(context, calls)
    },
    close: () => line.close(),
  }
}

/** Live text only goes to current watchers; a whole message becomes an event of the task. */
async function publishEvents(context: RemoteContext, lease: Lease, events: readonly WorkerEvent[]): Promise<number> {
  const whole = events.filter(({ type }) => type === 'message')
  await underLease(context, lease, {}, async () => ({
    ...(whole.length > 0 && {
      change: {
        events: whole.map(({ message_id, content }) => ({
          type: 'message.completed' as TaskEventType,
          data: { message_id, step_id: null, role: 'assistant', content, tool_calls: [] },
        })),
      },
    }),
    result: undefined,
  }))
  for (const { type, message_id, content } of events)
    if (type === 'message.delta') context.run.hub.delta(lease.task_id, message_id, content)
  return whole.length
}
