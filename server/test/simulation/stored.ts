import type { AttemptedDelivery } from '../../src/events/webhooks/delivery/after-attempt.ts'
import type { AgentConfig, LockedTask, Step, TaskError } from '../../src/engine/task.ts'
import type { SimulatedProcess } from './virtual-time.ts'

/** A task as it is kept. */
export type StoredTask = Omit<
  LockedTask,
  'now' | 'event_at' | 'agent' | 'money' | 'tokens_used' | 'has_budget' | 'providers_version'
> & {
  error: TaskError | null
  config: AgentConfig
  steps: Step[]
}

/** A process of the simulated world, by the name of its worker. */
export interface DeliveringProcess extends SimulatedProcess {
  id: string
}

export interface StoredDelivery extends AttemptedDelivery {
  webhook_id: string
  event_id: string
}
