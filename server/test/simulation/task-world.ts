import { windowStart } from '#contract/resources/budget-window.ts'
import type { Bus } from '../../src/events/streams/streams-bus.ts'
import { canceled } from '../../src/engine/journal/cancel.ts'
import { makeRng, type Rng } from '../rng.ts'
import { makeFaults, type Faults } from './faults.ts'
import { isOver, SimulatedStore } from './store.ts'
import { VirtualTime, type SimulatedProcess } from './virtual-time.ts'
import { SimulatedWorker, type WorkerWorld } from './worker.ts'
import { Witness } from './witness.ts'

/** Rules that a test can break on purpose, to check that the simulation finds it. */
export type PlantedFault = 'fencing is not checked' | 'backoff is ignored'

export interface WorldReport {
  broken: string | undefined
  trace: string
  /** How much happened: the same for the same seed. */
  counts: Witness['counts']
  /** How the tasks ended. */
  ended: string
  /** How long it took until all was done after the last fault. */
  drained_ms: number
}

const tasksCount = 12
const workersCount = 3
/** Things go wrong for so long. */
const faults_ms = 120_000
/**
 * All is done so long after the last fault: a call that hangs lasts 600 s, and what is left of waits, leases and tries is
 * less than half as much.
 */
const drain_ms = 900_000

/** Runs the world of a seed to its end, or to the first broken promise. */
export async function runTaskWorld(seed: number, planted?: PlantedFault): Promise<WorldReport> {
  const rng = makeRng(seed)
  // Shortly before a full hour, in which the window of the budget changes.
  const time = new VirtualTime(new Date(Date.UTC(2026, 10, 20, 9, 59) + rng.between(0, 120_000)))
  const faults = makeFaults(rng.fork())
  const witness = new Witness(time)
  const store = new SimulatedStore({ time, rng: rng.fork(), faults, witness, budget: aBudget(time, rng) })
  const world: WorkerWorld = {
    time,
    rng: rng.fork(),
    faults,
    store,
    witness,
    outage: { until: 0 },
    bus: makeBuses(time, rng, faults),
  }
  store.fences = planted !== 'fencing is not checked'
  time.waits = planted !== 'backoff is ignored'

  const uninstall = time.install()
  try {
    const people = new People(world, rng.fork())
    people.begin()
    // A canceled task's job for later is found then, and discarded.
    const isOverAll = (): boolean =>
      store.tasks.size === tasksCount && store.jobs.size === 0 && [...store.tasks.values()].every(isOver)
    await time.run(time.now + faults_ms, () => witness.broken !== undefined)
    people.end()
    const healed_at = time.now
    await time.run(healed_at + drain_ms, () => witness.broken !== undefined || (isOverAll() && people.areIdle()))
    const drained_ms = time.now - healed_at
    if (witness.broken === undefined) checkEnd(store, witness)
    const ended = [...store.tasks.values()].map(({ status, error }) => error?.code ?? status).join(' ')
    return { broken: witness.broken, trace: witness.trace, counts: witness.counts, ended, drained_ms }
  } finally {
    uninstall()
  }
}

function checkEnd(store: SimulatedStore, witness: Witness): void {
  for (const task of store.tasks.values())
    witness.must(
      isOver(task),
      `everything drains: ${task.id} is ${task.status} ${task.worker_id} ${JSON.stringify(task.wait)}`,
    )
  witness.must(store.jobs.size === 0, `no job is left: ${store.jobs.size}`)
  witness.must(store.budget.held_tokens === 0, `nothing is held: ${store.budget.held_tokens} tokens`)
}

function aBudget({ now }: VirtualTime, rng: Rng): SimulatedStore['budget'] {
  return {
    id: 'budget_1',
    scope: 'project',
    subject: 'proj_1',
    period: 'hour',
    max_cost_usd: null,
    max_tokens: rng.happens(0.5) ? 1e9 : rng.between(1000, 6000),
    spent_cost_usd: 0,
    spent_tokens: 0,
    held_cost_usd: 0,
    held_tokens: 0,
    window_start: windowStart('hour', new Date(now).toISOString()),
    warn_percent: 80,
    warned: false,
  }
}

/** Signals between processes, some of which are lost. */
function makeBuses(time: VirtualTime, rng: Rng, faults: Faults): WorkerWorld['bus'] {
  const listeners: { process: SimulatedProcess; kind: string; tell: Parameters<Bus['on']>[1] }[] = []
  return (process) => ({
    on(kind, tell) {
      listeners.push({ process, kind, tell })
      return () => {}
    },
    notify(kind, id = '') {
      for (const listener of listeners) {
        if (listener.kind !== kind || listener.process === process || faults.hits('signal is lost')) continue
        time.after(rng.between(1, 40), () => (listener.tell(id, 'elsewhere'), false), listener.process)
      }
    },
  })
}

/** Those who give tasks, cancel them, and do the workers and the store harm. */
class People {
  readonly #world: WorkerWorld
  readonly #rng: Rng
  readonly #workers: SimulatedWorker[] = []
  #started = 0
  #hasEnded = false

  constructor(world: WorkerWorld, rng: Rng) {
    this.#world = world
    this.#rng = rng
  }

  begin(): void {
    const { time, store } = this.#world
    for (let i = 0; i < workersCount; i++) this.#start(`host-${i}`)
    for (let i = 0; i < tasksCount; i++) {
      const config = this.#aConfig()
      const max_attempts = this.#rng.between(2, 5)
      time.after(this.#rng.between(0, 90_000), () => (store.insert(`task_${i + 10}`, { config, max_attempts }), false))
    }
    const harm = (): void => {
      if (this.#hasEnded) return
      this.#harm()
      time.after(this.#rng.between(200, 4000), harm)
    }
    time.after(1000, harm)
  }

  /** Nothing goes wrong any more, and there is room in the budget. */
  end(): void {
    const { faults, store, time, outage } = this.#world
    this.#hasEnded = true
    faults.stop()
    store.away_until = 0
    outage.until = 0
    store.budget.max_tokens = 1e9
    for (const worker of this.#workers) worker.frozen_until = time.now
    for (let i = 0; i < workersCount; i++)
      if (!this.#alive().some(({ instance }) => instance === `host-${i}`)) this.#start(`host-${i}`)
  }

  areIdle(): boolean {
    return this.#alive().every(({ runs }) => runs.size === 0)
  }

  #alive(): SimulatedWorker[] {
    return this.#workers.filter(({ isDead }) => !isDead)
  }

  #start(instance: string): void {
    const worker = new SimulatedWorker(`worker_${(this.#started += 1)}`, instance, this.#world)
    this.#workers.push(worker)
    worker.start()
  }

  #aConfig() {
    const rng = this.#rng
    const retry = {
      max_attempts: rng.between(2, 6),
      initial_delay_seconds: rng.pick([0.1, 0.5, 2, 5]),
      max_delay_seconds: rng.pick([5, 30]),
    }
    return {
      model: 'one',
      max_tokens: rng.between(20, 300),
      ...(rng.happens(0.3) ? { fallback_models: ['two'] } : {}),
      ...(rng.happens(0.8) ? { retry } : {}),
    }
  }

  #harm(): void {
    const { faults, time, store, witness, outage } = this.#world
    const rng = this.#rng
    if (faults.hits('store is away')) store.away_until = time.now + rng.between(500, 20_000)
    if (faults.hits('model is away')) outage.until = time.now + rng.between(5000, 40_000)
    const alive = this.#alive()
    if (alive.length === 0) return
    const worker = rng.pick(alive)
    if (faults.hits('worker freezes')) {
      worker.frozen_until = time.now + rng.between(500, 30_000)
      witness.note(`${worker.id} freezes for ${worker.frozen_until - time.now} ms`)
    }
    if (faults.hits('lock is lost')) worker.lockLost_until = time.now + rng.between(100, 8000)
    if (faults.hits('worker is killed')) {
      witness.note(`${worker.id} is killed`)
      worker.kill()
      time.after(rng.between(10, 15_000), () => this.#restart(worker))
    } else if (faults.hits('worker stops') && !worker.isClosing) {
      witness.note(`${worker.id} stops`)
      worker.stop()
      time.after(20_000, () => (worker.kill(), this.#restart(worker)))
    }
    if (faults.hits('cancel')) this.#cancel()
  }

  #restart({ instance }: SimulatedWorker): boolean {
    if (!this.#alive().some((other) => other.instance === instance)) this.#start(instance)
    return false
  }

  /** By force: its worker must not write any more. */
  #cancel(): void {
    const { store } = this.#world
    const open = [...store.tasks.values()].filter((task) => !isOver(task))
    if (open.length === 0) return
    const { id } = this.#rng.pick(open)
    const request = { reason: null, mode: 'force' as const, user_id: 'user_1' }
    const cancel = store.begin(undefined, async (tx) => {
      const task = (await tx.lock([id])).get(id)!
      const row = store.tasks.get(id)!
      if (isOver(row)) return
      const kind = row.status === 'running' ? 'end' : 'forget'
      await tx.apply([{ ...canceled(task, request, { effects: [], uncertain: [] }, { forced: true }), job: { kind } }])
    })
    // Whether it was done is seen in the task.
    cancel.catch(() => {})
  }
}
