import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { startProcess } from '../e2e/process.ts'
import { makeRng } from '../server/test/rng.ts'
import { load, machine, percentile } from './figures.ts'
import { connectionsMax, makeMix, type MixAnswer } from './parts/mix-requests.ts'
import { readOptions } from './parts/options.ts'

/**
 * What callers of all kinds get from one process with its embedded PostgreSQL (promises R5, R6): the standard mix (30 % read an
 * agent, 20 % lists, 15 % logs and metrics, 10 % updates, 8 % actions, 5 % creations, 3 % deletions, 4 % keys, 3 % projects, 2 %
 * refreshes of OAuth tokens), due by a schedule whether anything is answered or not; latencies count from when a request was due.
 * Then how much of the same mix it serves to callers that ask again at once, and what three times that does to it.
 *
 *     node bench/mix.ts --rate 1000 --minutes 5
 */
const values = readOptions({
  rate: { type: 'string', default: '1000' },
  minutes: { type: 'string', default: '5' },
  seed: { type: 'string', default: '1' },
  agents: { type: 'string', default: '500' },
  /** How long each part of the overload lasts; 0 leaves it out. */
  overload_s: { type: 'string', default: '30' },
})
const [rate, minutes, overload_s] = [values.rate, values.minutes, values.overload_s].map(Number) as [
  number,
  number,
  number,
]
/** Callers that ask again at once, to learn what can be served. */
const callers = 64
const overload = 3
/** More that come due are counted as left out. */
const openMax = connectionsMax
const tick_ms = 5

const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const service = await startProcess({
  CADRE_DATA_DIR: folder,
  CADRE_RATE_LIMITS_SCALE: '1000000',
  NODE_ENV: 'production',
})
try {
  const credentials: unknown = JSON.parse(await readFile(join(folder, 'credentials.json'), 'utf8'))
  const mix = await makeMix(service.url, credentials, makeRng(Number(values.seed)), Number(values.agents))
  console.log(`${rate} requests/s for ${minutes} minutes. Before: ${machine()}.\n`)
  await onSchedule(rate, 5)
  const steady = await onSchedule(rate, minutes * 60)
  tell(steady.answers)
  console.log(`\n${steady.left_out} were left out. After: load ${load().toFixed(2)}.`)
  tellOthers(steady.answers)
  if (overload_s > 0) await overloadIt()
  await mix.close()

  async function overloadIt(): Promise<void> {
    const calm = await closedLoop(overload_s)
    const capacity = rateOf(calm, overload_s)
    // What makes the callers late is no time of the service.
    const late = monitorEventLoopDelay({ resolution: 5 })
    late.enable()
    const max = await onSchedule(capacity * overload, overload_s)
    late.disable()
    const goodput = rateOf(
      max.answers.filter(({ at_s }) => at_s <= overload_s),
      overload_s,
    )
    const began_ms = performance.now()
    while (!(await mix.send()).isGood) await delay(20)
    const back_ms = performance.now() - began_ms
    const excess = max.answers.filter(({ isGood }) => !isGood)
    console.log(
      `\nTo ${callers} callers that ask again at once ${capacity.toFixed(0)}/s. Of ${(capacity * overload).toFixed(0)}/s it served ` +
        `${goodput.toFixed(0)}/s, ${((100 * goodput) / capacity).toFixed(0)} % of that; p50/p99/most ${times(max.answers.filter(({ isGood }) => isGood))}. ` +
        `Refused: ${excess.length}, p50/p99/most ${times(excess)}; left out because ${openMax} were open: ${max.left_out}. ` +
        `The next request was served after ${back_ms.toFixed(0)} ms. ` +
        `The event loop of the callers stood still for ${(late.percentile(99) / 1e6).toFixed(0)} ms (p99), at most ` +
        `${(late.max / 1e6).toFixed(0)} ms. Load ${load().toFixed(2)}.`,
    )
    console.log('What was served of it:\n')
    tell(max.answers.filter(({ isGood }) => isGood))
    tellOthers(max.answers)
  }

  function tell(answers: readonly MixAnswer[]): void {
    console.log('| Kind | answered | other statuses | p50, ms | p99, ms | most, ms |\n|---|---|---|---|---|---|')
    for (const kind of mix.kinds)
      console.log(
        line(
          kind,
          answers.filter((answer) => answer.kind === kind),
        ),
      )
    console.log(line('All', answers))
  }

  /** Sends by a schedule for so many seconds, and gives what came of it. */
  async function onSchedule(per_second: number, seconds: number): Promise<{ answers: MixAnswer[]; left_out: number }> {
    const answers: MixAnswer[] = []
    const open = new Set<Promise<void>>()
    let left_out = 0
    const began_ms = performance.now()
    for (let due = 0; due < per_second * seconds;) {
      const passed_s = (performance.now() - began_ms) / 1000
      for (; due < Math.min(passed_s, seconds) * per_second; due++) {
        if (open.size >= openMax) {
          left_out++
          continue
        }
        const due_ms = began_ms + (due / per_second) * 1000
        const one: Promise<void> = mix
          .send(due_ms)
          .then((answer) => void answers.push({ ...answer, at_s: (performance.now() - began_ms) / 1000 }))
          .finally(() => open.delete(one))
        open.add(one)
      }
      await delay(tick_ms)
    }
    await Promise.all(open)
    return { answers, left_out }
  }

  async function closedLoop(seconds: number): Promise<MixAnswer[]> {
    const answers: MixAnswer[] = []
    const end_ms = performance.now() + seconds * 1000
    const ask = async (): Promise<void> => {
      while (performance.now() < end_ms) answers.push(await mix.send())
    }
    await Promise.all(Array.from({ length: callers }, ask))
    return answers
  }
} finally {
  await service.end()
  await rm(folder, { recursive: true, force: true })
}

function rateOf(answers: readonly MixAnswer[], seconds: number): number {
  return answers.filter(({ isGood }) => isGood).length / seconds
}

function line(kind: string, answers: readonly MixAnswer[]): string {
  const all = answers.map(({ took_ms }) => took_ms)
  const cells = [0.5, 0.99, 1].map((share) => percentile(all, share).toFixed(1))
  return `| ${[kind, answers.length, answers.filter(({ isGood }) => !isGood).length, ...cells].join(' | ')} |`
}

function times(answers: readonly MixAnswer[]): string {
  const all = answers.map(({ took_ms }) => took_ms)
  return [0.5, 0.99, 1].map((share) => percentile(all, share).toFixed(0)).join('/') + ' ms'
}

/** Answers that were not what was asked for: how many of each. */
function tellOthers(answers: readonly MixAnswer[]): void {
  const counts = new Map<string, number>()
  for (const { kind, isGood, what } of answers)
    if (!isGood) counts.set(`${kind}: ${what}`, (counts.get(`${kind}: ${what}`) ?? 0) + 1)
  for (const [what, n] of counts) console.log(`  ${n} times ${what}`)
}
