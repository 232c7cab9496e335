import { setTimeout as delay } from 'node:timers/promises'
import type { Fault, Span } from '../fault.ts'
import { byLength } from '../checker/recovery.ts'
import { startEnvironment, type Environment } from '../environment.ts'
import { holdToPromises } from '../checker/verdict.ts'

const takeover_ms = 15_000

export const workerKilled: Fault = {
  id: 'F3',
  title: 'A worker is killed, or stopped and comes back as a zombie',
  hypothesis:
    'A worker dies by SIGKILL, or is stopped by SIGSTOP until others have taken its tasks, and goes on by SIGCONT. Tasks are taken ' +
    'over within 15 s and go on from the last step that was written down. No call of an unsafe tool is repeated unless a person ' +
    'allows it, and what the zombie writes is refused: sequences, journals and moves stay whole.',
  async run(run) {
    const { rng, short } = run
    const environment = await startEnvironment(run, { rate: 5, taskCallers: 8 })
    const kills = short ? 5 : 200
    const stops = short ? 1 : 50
    const hurt: { at: number; until: Promise<void> | undefined }[] = []
    for (const how of rng.shuffled([...times(kills, 'kill'), ...times(stops, 'stop')])) {
      await delay(rng.between(200, 1000))
      if (how === 'stop')
        await stopForAWhile(environment, short ? takeover_ms * 1.5 : 60_000, (at) =>
          hurt.push({ at, until: undefined }),
        )
      else {
        await environment.cluster.kill('worker')
        hurt.push({ at: Date.now(), until: undefined })
      }
    }
    await environment.cluster.whole()
    await holdToPromises(run, environment)
    const taken = await takeovers(environment)
    const offset = performance.timeOrigin
    const spans = taken.flatMap((at): Span[] => {
      const before = hurt.filter((one) => one.at <= at + 50).map((one) => one.at)
      return before.length > 0 ? [{ from: Math.max(...before) - offset, to: at - offset }] : []
    })
    if (spans.length > 0)
      run.within(
        'R11',
        `slowest of ${spans.length} takeovers after ${hurt.length} losses`,
        takeover_ms,
        spans.toSorted(byLength)[0],
      )
    else run.say('no task was under a worker that was lost: nothing is known of takeovers')
  },
}

function times<T>(count: number, what: T): T[] {
  return Array.from({ length: count }, () => what)
}

/** Stops a worker until another one has one of its tasks, or for `max_ms`. */
async function stopForAWhile(environment: Environment, max_ms: number, stopped: (at: number) => void): Promise<void> {
  await environment.cluster.whole()
  const before = (await takeovers(environment)).length
  const [victim] = environment.cluster.there('worker')
  victim!.process.kill('SIGSTOP')
  stopped(Date.now())
  const end = performance.now() + max_ms
  while (performance.now() < end && (await takeovers(environment)).length === before) await delay(100)
  victim!.process.kill('SIGCONT')
}

/** When tasks were taken over, in milliseconds since 1970. */
async function takeovers({ sql }: Environment): Promise<number[]> {
  const rows = await sql<{ at: number }>`
    select (extract(epoch from created_at) * 1000)::float8 as at from task_event
    where type = 'task.retrying' and data->>'reason' = 'worker_lost'`
  return rows.map(({ at }) => at)
}
