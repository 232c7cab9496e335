import { availableParallelism, totalmem } from 'node:os'
import type { Consumption } from '../task.ts'

/** Resources that the process has used so far, and the available ones. */
export interface ProcessUse {
  cpu_seconds: number
  memory_bytes: number
  cores: number
  memory_bytes_available: number
  /** Seconds of a monotonic clock. */
  at: number
}

/** Reads the resource use of this process. In a container, the container's limits are the available resources. */
export function readProcessUse(): ProcessUse {
  const { user, system } = process.cpuUsage()
  const limit = process.constrainedMemory()
  const whole = totalmem()
  return {
    cpu_seconds: (user + system) / 1e6,
    memory_bytes: process.memoryUsage.rss(),
    cores: availableParallelism(),
    memory_bytes_available: limit > 0 && limit < whole ? limit : whole,
    at: performance.now() / 1000,
  }
}

interface AgentTime {
  tasks: number
  /** Seconds summed over tasks, and seconds with at least one task, since the last sample. */
  task_seconds: number
  busy_seconds: number
  since: number
}

/**
 * Attributes the CPU time and memory of the process to agents, by the rule of docs/guides/metrics.md: the use between
 * two samples is divided among agents by the running time of their tasks.
 */
export class UsageMeter {
  readonly #agents = new Map<string, AgentTime>()
  readonly #read: () => ProcessUse
  #last: ProcessUse

  constructor(read: () => ProcessUse = readProcessUse) {
    this.#read = read
    this.#last = read()
  }

  /** A task of the agent starts to run. */
  begin(agent_id: string, at = performance.now() / 1000): void {
    const agent = this.#agents.get(agent_id) ?? { tasks: 0, task_seconds: 0, busy_seconds: 0, since: at }
    advance(agent, at)
    agent.tasks += 1
    this.#agents.set(agent_id, agent)
  }

  /** A task of the agent stops running. */
  end(agent_id: string, at = performance.now() / 1000): void {
    const agent = this.#agents.get(agent_id)
    if (!agent) return
    advance(agent, at)
    agent.tasks -= 1
  }

  /** The shares of the time since the last sample, for each agent that had a running task. */
  sample(): { agent_id: string; consumed: Consumption }[] {
    const now = this.#read()
    const elapsed = now.at - this.#last.at
    const cpu = Math.max(0, now.cpu_seconds - this.#last.cpu_seconds)
    const memory = ((now.memory_bytes + this.#last.memory_bytes) / 2) * elapsed
    this.#last = now
    for (const agent of this.#agents.values()) advance(agent, now.at)
    const whole = [...this.#agents.values()].reduce((sum, { task_seconds }) => sum + task_seconds, 0)
    const shares: { agent_id: string; consumed: Consumption }[] = []
    for (const [agent_id, agent] of this.#agents) {
      const share = whole > 0 ? agent.task_seconds / whole : 0
      // Usage of the process while the agent had no task does not count for the agent.
      const busy = elapsed > 0 ? Math.min(1, agent.busy_seconds / elapsed) : 0
      if (share > 0) {
        shares.push({
          agent_id,
          consumed: {
            cpu_seconds: Math.min(cpu * share * busy, agent.busy_seconds * now.cores),
            memory_byte_seconds: memory * share * busy,
            cpu_seconds_available: agent.busy_seconds * now.cores,
            memory_byte_seconds_available: agent.busy_seconds * now.memory_bytes_available,
          },
        })
      }
      agent.task_seconds = 0
      agent.busy_seconds = 0
      if (agent.tasks === 0) this.#agents.delete(agent_id)
    }
    return shares
  }
}

function advance(agent: AgentTime, at: number): void {
  const passed = Math.max(0, at - agent.since)
  agent.task_seconds += passed * agent.tasks
  if (agent.tasks > 0) agent.busy_seconds += passed
  agent.since = at
}
