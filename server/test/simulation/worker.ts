import { inspect } from 'node:util'
import type { Hub } from '../../src/events/streams/streams-hub.ts'
import type { Bus } from '../../src/events/streams/streams-bus.ts'
import { named, deferTask, take } from '../../src/engine/run/claim.ts'
import { joined } from '../../src/engine/journal/endings.ts'
import { Journal, LeaseLost, type Claim, type Decide } from '../../src/engine/journal/journal.ts'
import { givenBack, heartbeat_ms, isDead } from '../../src/engine/maintenance/leases.ts'
import { isTransient } from '../../src/platform/postgres/database.ts'
import { makeCircuitBreaker } from '../../src/engine/models/circuit-breaker.ts'
import { makeCooldown } from '../../src/engine/models/cooldown.ts'
import { beginWithClaim, runTask, type RunContext } from '../../src/engine/run/run-task.ts'
import { Run } from '../../src/engine/run/run.ts'
import type { Sql } from '../../src/platform/postgres/database.ts'
import type { Rng } from '../rng.ts'
import type { Faults } from './faults.ts'
import { simulatedModel, simulatedTools } from './model.ts'
import type { SimulatedStore } from './store.ts'
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts'
import type { Witness } from './witness.ts'
import type { TaskChange } from '../../src/engine/task.ts'

export interface WorkerWorld {
  time: VirtualTime
  rng: Rng
  faults: Faults
  store: SimulatedStore
  witness: Witness
  outage: { until: number }
  bus: (process: SimulatedProcess) => Pick<Bus, 'notify' | 'on'>
}

const slots = 4
const poll_ms = 500
const budgets_ms = 2000
const grace_ms = 5000

const silentHub: Hub = {
  watch: () => () => {},
  publish() {},
  delta() {},
  reasoning() {},
  ended() {},
  forget() {},
  hasRested: () => false,
  isAwaited: () => false,
  currentMessage: () => undefined,
  close() {},
}
/** What a claim reads of a task that ends there, for its last events: nothing is found here. */
const noSql = (async () => []) as unknown as Sql

/** The journal, seen by the witness. */
class WatchedJournal extends Journal {
  readonly #see: (claim: Claim, position: number) => void
  constructor(options: ConstructorParameters<typeof Journal>[0], see: (claim: Claim, position: number) => void) {
    super(options)
    this.#see = see
  }
  override write(claim: Claim, decide: Decide): Promise<boolean> {
    const position = claim.writes + 1
    return super.write(claim, (task) => {
      this.#see(claim, position)
      return decide(task)
    })
  }
}

/**
 * A worker process: what it decides is the engine's own code, on a simulated store and model. Around it are the loops of
 * `worker.ts` and `maintenance.ts`, which only say when something is looked at.
 */
export class SimulatedWorker implements SimulatedProcess {
  readonly id: string
  readonly instance: string
  isDead = false
  isClosing = false
  frozen_until = 0
  lockLost_until = 0
  readonly runs = new Map<string, Run>()
  readonly #world: WorkerWorld
  readonly #believed = new Map<string, Claim>()
  readonly #context: RunContext
  #isBusy = false

  constructor(id: string, instance: string, world: WorkerWorld) {
    this.id = id
    this.instance = instance
    this.#world = world
    const { time, rng, store, witness } = world
    const model = simulatedModel({ ...world, retryAfterMax_seconds: 40 })
    this.#context = {
      journal: new WatchedJournal(
        { store: store.connect(this, this.#believed), hub: silentHub, onDeferred: () => {} },
        (claim, position) => witness.writes(claim, position, store.tasks.get(claim.task_id)),
      ),
      models: { resolve: (name) => ({ model, name }) },
      rereadModels: async () => {},
      prices: { of: () => null },
      hub: silentHub,
      turns: { seal: () => '', open: (_, messages) => [...messages] },
      reload: async (run) => void (run.steps = [...(store.tasks.get(run.claim.task_id)?.steps ?? [])]),
      tokens_per_hour: Infinity,
      random: () => rng.next(),
      isClosing: () => this.isClosing,
      cooldown: makeCooldown({ bus: world.bus(this), now: () => time.now }),
      circuitBreaker: makeCircuitBreaker({ now: () => time.now }),
    }
  }

  start(): void {
    const { time, rng, store, faults, witness } = this.#world
    witness.note(`${this.id} starts on ${this.instance}`)
    store.workers.set(this.id, { instance: this.instance, seen_at: time.now })
    store.locks.set(this.id, () => !this.isDead && this.lockLost_until <= time.now)
    // Its own connection and thread, which nothing else keeps waiting.
    const beat = (): boolean => {
      const seen = store.workers.get(this.id)
      if (seen && !store.isAway && !faults.hits('beat is lost')) seen.seen_at = time.now
      return false
    }
    time.every(heartbeat_ms, beat, this)
    time.every(poll_ms + rng.between(0, 50), () => this.#inScope(this.#wantsTasks, this.#claim), this)
    time.every(heartbeat_ms + rng.between(0, 50), () => this.#inScope(this.#hasStrays, this.#requeueStrays), this)
    time.every(heartbeat_ms + rng.between(0, 50), () => this.#reap(false), this)
    time.every(budgets_ms, () => this.#inScope(() => store.roomy().length > 0, this.#sendRoomy), this)
    this.#reap(true)
  }

  /** It stops as it was asked to: what it holds is ended or given back. */
  stop(): void {
    this.isClosing = true
    const interrupt = (): void => this.runs.forEach((run) => run.interrupt('shutdown'))
    this.#world.time.after(grace_ms, () => this.#world.time.scope.run({ process: this }, interrupt), this)
  }

  kill(): void {
    this.isDead = true
    for (const run of this.runs.values()) run.end()
  }

  #inScope(isNeeded: () => boolean, act: () => Promise<unknown>): boolean {
    if (this.#isBusy || !isNeeded.call(this)) return false
    const { time } = this.#world
    this.#isBusy = true
    // The store is away, and it is looked again.
    const done = (): void => void (this.#isBusy = false)
    time.scope.run({ process: this }, () => void act.call(this).then(done, done))
    return true
  }

  #wantsTasks(): boolean {
    return !this.isClosing && this.runs.size < slots && this.#world.store.hasJobs()
  }

  async #claim(): Promise<void> {
    const runs = await this.#world.store.begin(this, async (tx) => {
      const jobs = tx.fetch(slots - this.runs.size)
      const tasks = await tx.lock(jobs.map(({ task_id }) => task_id))
      const changes: TaskChange[] = []
      const taken: Run[] = []
      for (const job of jobs) {
        const task = named(job, tasks.get(job.task_id))
        if (!task) {
          tx.discard(job.id)
          continue
        }
        const change = (await deferTask(noSql, task)) ?? take(task, this.id)
        if (!change.claimed) {
          changes.push(change)
          continue
        }
        const run = new Run({
          claim: { task_id: task.id, worker_id: this.id, attempt: task.attempt + 1, writes: 0 },
          task,
          work: task.work,
          steps: [...this.#world.store.tasks.get(task.id)!.steps],
          messages: [],
          expires_at: null,
          environment: {},
        })
        run.toolset = simulatedTools(this.#world.rng)
        taken.push(run)
        const first = beginWithClaim(run, task, this.#context)
        changes.push(first ? { ...joined(change, first), task } : change)
      }
      await tx.apply(changes)
      return taken
    })
    for (const run of runs) this.#begin(run)
  }

  #begin(run: Run): void {
    const { time, witness } = this.#world
    const { task_id, attempt } = run.claim
    this.runs.get(task_id)?.interrupt('lost')
    this.runs.set(task_id, run)
    this.#believed.set(task_id, run.claim)
    const end = (error?: unknown): void => {
      run.end()
      if (this.runs.get(task_id) === run) this.runs.delete(task_id)
      if (error instanceof LeaseLost) witness.counts.lost += 1
      else if (error && !isTransient(error)) witness.must(false, `nothing goes wrong on our side: ${inspect(error)}`)
    }
    time.scope.run({ process: this, attempt }, () => void runTask(run, this.#context).then(() => end(), end))
  }

  #hasStrays(): boolean {
    const { store } = this.#world
    const held = store.heldBy(this.id)
    const isOurs = (id: string): boolean => held.some((task) => task.id === id)
    return (
      !store.workers.has(this.id) ||
      held.some(({ id }) => !this.runs.has(id)) ||
      [...this.runs.keys()].some((id) => !isOurs(id))
    )
  }

  async #requeueStrays(): Promise<void> {
    const { store, time } = this.#world
    const lost = await store.begin(this, async (tx) => {
      tx.also(() => {
        if (!store.workers.has(this.id)) store.workers.set(this.id, { instance: this.instance, seen_at: time.now })
      })
      const held = store.heldBy(this.id).map(({ id }) => id)
      const strays = await tx.lock(held.filter((id) => !this.runs.has(id)))
      await tx.apply([...strays.values()].map((task) => givenBack(task, { crashed: true })))
      return [...this.runs.keys()].filter((id) => !held.includes(id))
    })
    for (const id of lost) this.runs.get(id)?.interrupt('lost')
  }

  #reap(starting: boolean): boolean {
    const { store, time } = this.#world
    if (store.isAway) return false
    let found = false
    for (const { id, instance, ...seen } of store.seenWorkers()) {
      const is_predecessor = starting && instance === this.instance
      if (id === this.id || !isDead({ ...seen, is_predecessor })) continue
      found = true
      // What fails is done by the next look.
      time.scope.run({ process: this }, () => void this.#requeueAll(id).catch(() => {}))
    }
    return found
  }

  async #requeueAll(worker_id: string): Promise<void> {
    const { store, witness } = this.#world
    await store.begin(this, async (tx) => {
      const held = await tx.lock(store.heldBy(worker_id).map(({ id }) => id))
      await tx.apply([...held.values()].map((task) => givenBack(task, { crashed: true })))
      tx.also(() => {
        store.workers.delete(worker_id)
        witness.note(`${this.id} buried ${worker_id}, which held ${held.size}`)
      })
    })
  }

  async #sendRoomy(): Promise<void> {
    const { store } = this.#world
    await store.begin(this, async (tx) => {
      const tasks = await tx.lock(store.roomy())
      await tx.apply([...tasks.values()].map((task) => ({ task, job: { kind: 'first', start_after: undefined } })))
    })
  }
}
