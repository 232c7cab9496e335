import { DueTimes } from '../../src/resources/schedules/cron.ts'
import { decide, firstDue, missed_ms, type Situation, type Timing } from '../../src/resources/schedules/due.ts'
import { makeRng, type Rng } from '../rng.ts'
import { makeFaults, type Faults } from './faults.ts'
import type { WorldReport } from './task-world.ts'
import { VirtualTime, type SimulatedProcess } from './virtual-time.ts'
import { Witness } from './witness.ts'

/** Moments shortly before clocks change, and a day on which none does. */
const beginnings = [
  { time_zone: 'Europe/Berlin', at: '2026-03-28T23:30Z' },
  { time_zone: 'Europe/Berlin', at: '2026-10-24T22:30Z' },
  { time_zone: 'America/New_York', at: '2026-03-08T05:30Z' },
  { time_zone: 'America/New_York', at: '2026-11-01T04:30Z' },
  { time_zone: 'Australia/Lord_Howe', at: '2026-04-04T13:30Z' },
  { time_zone: 'Australia/Lord_Howe', at: '2026-10-03T14:00Z' },
  { time_zone: 'UTC', at: '2026-11-20T10:00Z' },
] as const
const patterns = ['*/5 * * * *', '*/30 * * * *', '@hourly', '30 2 * * *', '0 1,2,3 * * *', '15,45 0-6 * * *'] as const

const world_ms = 5 * 3_600_000
const processesCount = 3
const schedulesCount = 3

/** A schedule as it is kept, and what it did. */
interface StoredSchedule extends Timing {
  id: string
  tasks: { due: string; isOpen: boolean }[]
  acts: { due: number; at: number; result: string }[]
  /** Times at which the schedule was read and the result committed. */
  looks: number[]
  /** While it was active. */
  spans: { from: number; to: number }[]
}

/**
 * Schedules, three processes that look after them, fail and die, and people that pause them: hours around a change of
 * clocks. What a schedule does is decided by `due.ts`; in the planted fault it is moved after its task is created.
 */
export async function runScheduleWorld(seed: number, isMovedAfter = false): Promise<WorldReport> {
  const world = new ScheduleWorld(makeRng(seed), isMovedAfter)
  return world.run()
}

class ScheduleWorld {
  readonly #rng: Rng
  readonly #faults: Faults
  readonly #time: VirtualTime
  readonly #witness: Witness
  readonly #schedules: StoredSchedule[]
  readonly #isMovedAfter: boolean
  readonly #situation: Situation = {
    agent_status: 'running',
    agent_accepts_tasks: true,
    has_open_task: false,
    queue_is_full: false,
  }

  constructor(rng: Rng, isMovedAfter: boolean) {
    this.#rng = rng
    this.#isMovedAfter = isMovedAfter
    this.#faults = makeFaults(rng.fork())
    const { time_zone, at } = rng.pick(beginnings)
    this.#time = new VirtualTime(new Date(Date.parse(at) + rng.between(0, 3_600_000)))
    this.#witness = new Witness(this.#time)
    this.#schedules = Array.from({ length: schedulesCount }, (_, i): StoredSchedule => {
      const cron = rng.pick(patterns)
      return {
        id: `schedule_${i}`,
        cron,
        time_zone,
        overlap: rng.pick(['skip', 'queue'] as const),
        catch_up: rng.pick(['once', 'none'] as const),
        next_run_at: firstDue({ cron, time_zone }, new Date(this.#time.now)),
        tasks: [],
        acts: [],
        looks: [],
        spans: [{ from: this.#time.now, to: Infinity }],
      }
    })
  }

  async run(): Promise<WorldReport> {
    const time = this.#time
    for (let i = 0; i < processesCount; i++) this.#start(`scheduler_${i}`)
    time.after(60_000, this.#people)
    await time.run(time.now + world_ms, () => this.#witness.broken !== undefined)
    this.#faults.stop()
    const healed_at = time.now
    for (const schedule of this.#schedules) if (schedule.next_run_at === null) this.#resume(schedule)
    this.#start('scheduler_last')
    await time.run(time.now + 120_000, () => this.#witness.broken !== undefined)
    for (const schedule of this.#schedules) this.#check(schedule)
    const ended = this.#schedules.map(({ acts }) => acts.map(({ result }) => result).join(' ')).join(', ')
    const { broken, trace, counts } = this.#witness
    return { broken, trace, counts, ended, drained_ms: time.now - healed_at }
  }

  #start(name: string): void {
    const process: SimulatedProcess = { isDead: false, frozen_until: 0 }
    const look = (): false => {
      for (const schedule of this.#schedules) this.#look(schedule, process)
      if (this.#faults.hits('worker freezes')) process.frozen_until = this.#time.now + this.#rng.between(0, 3_000_000)
      if (this.#faults.hits('worker is killed')) this.#die(name, process)
      this.#time.after(this.#rng.between(1000, 50_000), look, process)
      return false
    }
    this.#time.after(this.#rng.between(0, 1000), look, process)
  }

  #die(name: string, process: SimulatedProcess): void {
    process.isDead = true
    this.#time.after(this.#rng.between(1000, 1_000_000), () => (this.#start(name), false))
  }

  /** As `act` of `scheduler.ts`: one transaction, in which a due schedule is moved on and its task is created. */
  #look(schedule: StoredSchedule, process: SimulatedProcess): void {
    if (process.isDead || this.#faults.hits('store refuses')) return
    const { now } = this.#time
    const has_open_task = schedule.tasks.some(({ isOpen }) => isOpen)
    const situation = { ...this.#situation, has_open_task }
    const decision = decide(schedule, situation, new Date(now))
    if (this.#faults.hits('store fails before the commit')) return
    if (!decision) return void schedule.looks.push(now)
    const { due, next, fault } = decision
    const move = (): void => {
      schedule.next_run_at = next
      schedule.looks.push(now)
    }
    this.#sees(schedule, { due, next, code: fault?.code }, situation)
    schedule.acts.push({ due: Date.parse(due), at: now, result: fault?.code ?? 'task' })
    this.#witness.note(`${schedule.id} ${schedule.cron} due ${due}: ${fault?.code ?? 'task'}, next ${next}`)
    if (!fault) this.#create(schedule, due)
    if (this.#faults.hits('scheduler dies')) process.isDead = true
    if (!this.#isMovedAfter) move()
    else this.#time.after(this.#rng.between(1, 50), () => (move(), false), process)
    if (process.isDead) this.#die('scheduler', process)
  }

  #create(schedule: StoredSchedule, due: string): void {
    const task = { due, isOpen: true }
    schedule.tasks.push(task)
    this.#time.after(this.#rng.between(1000, 900_000), () => ((task.isOpen = false), false))
  }

  /** What a decision must be, whatever made it. */
  #sees(
    { overlap, catch_up, id }: StoredSchedule,
    { due, next, code }: { due: string; next: string | null; code: string | undefined },
    situation: Situation,
  ): void {
    const { now } = this.#time
    const late_ms = now - Date.parse(due)
    this.#witness.must(late_ms >= 0, `nothing is done before it is due: ${id} ${due}`)
    this.#witness.must(next !== null && Date.parse(next) > now, `the next due time is to come: ${id} ${next}`)
    const { agent_accepts_tasks, queue_is_full, has_open_task } = situation
    const isMissed = catch_up === 'none' && late_ms > missed_ms
    const isHindered = isMissed || !agent_accepts_tasks || queue_is_full || (overlap === 'skip' && has_open_task)
    this.#witness.must((code !== undefined) === isHindered, `a skip has its reason: ${id} ${due} ${code}`)
  }

  /** They stop the agent, fill its queue, and pause and resume schedules. */
  readonly #people = (): false => {
    const { time, rng } = { time: this.#time, rng: this.#rng }
    this.#situation.agent_accepts_tasks = rng.happens(0.8)
    this.#situation.agent_status = this.#situation.agent_accepts_tasks ? 'running' : 'stopped'
    this.#situation.queue_is_full = rng.happens(0.1)
    const schedule = rng.pick(this.#schedules)
    if (schedule.next_run_at === null) this.#resume(schedule)
    else if (!this.#isMovedAfter && rng.happens(0.1)) {
      schedule.next_run_at = null
      schedule.spans.at(-1)!.to = time.now
    }
    time.after(rng.between(60_000, 1_200_000), this.#people)
    return false
  }

  #resume(schedule: StoredSchedule): void {
    schedule.next_run_at = firstDue(schedule, new Date(this.#time.now))
    schedule.spans.push({ from: this.#time.now, to: Infinity })
  }

  /** Each due time brought exactly one task or one counted skip, or had passed when a later one was acted for. */
  #check({ id, cron, time_zone, acts, looks, spans }: StoredSchedule): void {
    const times = new DueTimes(cron, time_zone)
    const dueTimes = new Set(acts.map(({ due }) => due))
    this.#witness.must(dueTimes.size === acts.length, `a due time is acted for once: ${id} ${cron}`)
    for (const { from, to } of spans) {
      const until = Math.min(to, this.#time.now)
      for (let at = times.after(new Date(from)); at && at.getTime() <= until; at = times.after(at)) {
        const due = at.getTime()
        if (dueTimes.has(due)) continue
        const later = acts.find((act) => act.due > due && act.at <= until)?.at ?? until
        const seen = looks.some((look) => look >= due && look < later)
        this.#witness.must(!seen, `no due time is lost: ${id} ${cron} ${at.toISOString()}`)
      }
    }
  }
}
