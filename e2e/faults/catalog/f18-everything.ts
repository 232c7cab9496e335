import { setTimeout as delay } from 'node:timers/promises'
import { buckets } from '#contract/core/limits.ts'
import { isConnectionLost } from '../../../server/src/platform/postgres/database.ts'
import { makeKey, makePerson } from '../../../server/test/actors.ts'
import { startProcess } from '../../process.ts'
import { deathPoints, dieAt } from '../nemesis/failpoint-death.ts'
import { clockJumps, makeClock, whyNoClock } from '../nemesis/fake-clock.ts'
import type { Fault, Run } from '../fault.ts'
import { holdAgents } from '../nemesis/hold-agents.ts'
import { badWeathers, blow, killBackend, killServer, untilAccepts } from '../nemesis/injections.ts'
import { startEnvironment, type Environment } from '../environment.ts'
import { holdToPromises, tally } from '../checker/verdict.ts'
import { checkWindowCounts, minuteAfter, startWindows } from '../checker/windows.ts'

const minute_ms = 60_000
/** Limits are exact where they can be reached: so far beyond the documented ones, and no further. */
const scale = 20
const long_minutes = 240
const short_minutes = 2

/** One that hurts, until it has healed. Gives what is wrong with what came of it. */
interface Injection {
  name: string
  hurt: () => Promise<readonly string[] | void>
}

export const everything: Fault = {
  id: 'F18',
  title: 'Everything at once',
  hypothesis:
    'For as long as --minutes says, every 5 to 30 s (2 to 6 in the short form) something of F1 to F5, F8 and F10 is injected at random, by ' +
    'two who know nothing of each other: one hurts API processes, workers and a worker’s clock, the other PostgreSQL, the network to it, ' +
    'locks, and requests that are under way; models and tools fail all the while. No promise of R1 to R4 breaks, no window of a limit ' +
    'admits more than it has unless PostgreSQL crashed in it, and two minutes after the last fault no task is left undone.',
  isAlone: true,
  async run(run) {
    const { rng, short, minutes = short ? short_minutes : long_minutes } = run
    const env = { CADRE_RATE_LIMITS_SCALE: String(scale) }
    const environment = await startEnvironment(run, { apis: short ? 2 : 4, rate: short ? 15 : 40, env })
    const crashes: { from: number; to: number }[] = []
    const wrong: string[] = []
    const done: string[] = []
    const end = performance.now() + minutes * minute_ms
    const hurtUntilTheEnd = async (injections: readonly Injection[]): Promise<void> => {
      const own = rng.fork()
      for (;;) {
        const pause_ms = short ? own.between(2000, 6000) : own.between(5000, 30_000)
        if (performance.now() + pause_ms > end) return void (await delay(Math.max(0, end - performance.now())))
        await delay(pause_ms)
        const { name, hurt } = own.pick(injections)
        try {
          wrong.push(...((await hurt()) ?? []).map((one) => `${name}: ${one}`))
          done.push(name)
        } catch (error) {
          // What we hurt by may be hurt itself: our own connection to PostgreSQL. All else is a finding.
          if (isConnectionLost(error)) run.say(`${name} could not be injected: ${String(error)}`)
          else wrong.push(`${name}: ${String(error)}`)
        }
      }
    }
    const owner = await makePerson(environment)
    const { key } = await makeKey(environment, owner, ['read'])
    const windows = startWindows({
      urls: () => environment.cluster.there('service').flatMap(({ url }) => url ?? []),
      api_key: key,
      path: '/api/v1/auth/user',
      connections: short ? 8 : 64,
      pause_ms: short ? 50 : 100,
    })
    await Promise.all([
      hurtUntilTheEnd(await ofProcesses(run, environment)),
      hurtUntilTheEnd(ofDatabase(run, environment, (crash) => crashes.push(crash))),
    ])
    const counted = await windows.stop()
    await environment.cluster.whole()
    run.say(`${done.length} injections in ${minutes} min: ${tally(done.toSorted())}`)
    run.holds('R2', `what single injections hold, of ${done.length}`, wrong)
    const limit = buckets.user.minute * scale
    const hasCrashed = (ends: number): boolean =>
      crashes.some(({ from, to }) => minuteAfter(from) <= ends && ends - 60 <= to / 1000)
    const { judged, admitted, refused, unknown, wrong: inexact } = checkWindowCounts(counted, limit, hasCrashed)
    const text = `${judged} of ${counted.length} windows, admitted ${admitted.join(', ')} of ${limit}, ${refused} refused, ${unknown} unknown`
    // A window that refused no request says nothing of its limit.
    if (refused > 0 || inexact.length > 0) run.holds('R16', text, inexact)
    else run.say(`nothing is known of R16, for no window that PostgreSQL did not crash in was filled: ${text}`)
    await holdToPromises(run, environment)
  },
}

/** What hurts our processes. */
async function ofProcesses(run: Run, environment: Environment): Promise<Injection[]> {
  const { rng } = run
  const all: Injection[] = [
    { name: 'F1 API killed', hurt: async () => (await environment.cluster.kill('service')).isBack },
    { name: 'F3 worker killed', hurt: async () => (await environment.cluster.kill('worker')).isBack },
    { name: 'F3 worker stopped', hurt: () => stopWorker(environment, rng.between(1000, 20_000)) },
  ]
  const missing = await whyNoClock()
  if (missing) run.say(`without F10: ${missing}`)
  else {
    const clock = await makeClock(run)
    const worker = await startProcess(
      { ...environment.env, CADRE_DATA_DIR: '/nowhere/clock', ...clock.env },
      { args: ['--role', 'worker'] },
    )
    run.atEnd(() => worker.end('SIGKILL'))
    const hurt = async (): Promise<string[]> => {
      await clock.set(rng.pick(clockJumps))
      await delay(rng.between(1000, 4000))
      await clock.set('+0')
      const hasEnded = worker.process.exitCode !== null || worker.process.signalCode !== null
      return hasEnded ? ['the worker whose clock jumps has ended'] : []
    }
    all.push({ name: 'F10 clock', hurt })
  }
  return all
}

/** Stops one that then comes back and believes that it still has its tasks. */
async function stopWorker({ cluster }: Environment, length_ms: number): Promise<void> {
  await cluster.whole()
  const [victim] = cluster.there('worker')
  victim!.process.kill('SIGSTOP')
  await delay(length_ms)
  victim!.process.kill('SIGCONT')
}

/** Kills a process of PostgreSQL, and waits until the server is back. */
async function killOne(environment: Environment): Promise<void> {
  const { pid } = environment.postgres
  await killBackend(environment)
  for (const end = performance.now() + 10_000; environment.postgres.pid === pid && performance.now() < end;)
    await delay(20)
  await untilAccepts(environment)
}

/** What hurts PostgreSQL, the way to it, and what is asked of it. */
function ofDatabase(
  run: Run,
  environment: Environment,
  crashed: (crash: { from: number; to: number }) => void,
): Injection[] {
  const { rng, short } = run
  const crash = async (hurt: () => Promise<unknown>): Promise<void> => {
    const from = Date.now()
    await hurt()
    crashed({ from, to: Date.now() })
  }
  return [
    { name: 'F2 death', hurt: () => dieAt(run, environment, rng.pick(deathPoints)) },
    {
      name: 'F4 PostgreSQL killed',
      hurt: () => crash(() => killServer(environment, rng.happens(0.3) ? rng.between(200, short ? 2000 : 10_000) : 0)),
    },
    { name: 'F4 backend killed', hurt: () => crash(() => killOne(environment)) },
    ...badWeathers.map((make) => {
      const weather = make(rng)
      return { name: `F5 ${weather.kind}`, hurt: async () => void (await blow(environment, make(rng), rng)) }
    }),
    {
      name: 'F8 pool',
      async hurt() {
        const { wrong } = await holdAgents(environment, 300, (text) => run.say(text))
        // Its process may be killed meanwhile.
        return wrong.filter((one) => one !== 'an answer is undefined')
      },
    },
  ]
}
