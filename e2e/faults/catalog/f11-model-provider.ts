import { setTimeout as delay } from 'node:timers/promises'
import { startFakeModelServer } from '../../../server/test/fake-models/fake-model-server.ts'
import { lastUserText } from '../../../server/test/fake-models/fake-chat-messages.ts'
import { sender, type Reply } from '../../../server/test/harness.ts'
import { isFast, providerCases, type ProviderCase } from './f11-cases.ts'
import { end_ms, failuresMax, checkAgents, checkEnds, checkWaits, type Ended, type Given } from './f11-checker.ts'
import type { Fault, Run } from '../fault.ts'
import { watchMemory } from '../checker/memory.ts'
import { startEnvironment, type Environment } from '../environment.ts'
import { holdToPromises } from '../checker/verdict.ts'

const endLong_ms = 900_000
const pollInterval_ms = 250
const mebibyte = 1024 ** 2
/** Memory that a slot may take: an answer is read up to 4 Mi characters, and what one left is not collected at once. */
const slotMax_bytes = 8 * mebibyte

export const modelProvider: Fault = {
  id: 'F11',
  title: 'A provider of models fails in every way it can',
  hypothesis:
    'A provider answers 429, 500 and 503, resets, is silent, cuts its stream, sends what is no JSON, of wrong types or 10 MB, an error with ' +
    'status 200, calls with bad arguments or calls without end. A call that may succeed later is made five times at most, with waits that ' +
    'double from 0.5 s, half of each by chance, or as long as the provider asks; a model that ten calls in a row had no answer of is left alone, but for one call at a time. Every task ends, within 60 s where the provider is not ' +
    'silent for minutes, with the code of what went wrong. An agent is put into error by five failed tasks and by no fewer, and works ' +
    'again after a restart. Tasks of other projects go on, also while silent calls take all slots that a project may have. A worker takes no more than 8 MiB a slot for all of it.',
  isAlone: true,
  async run(run) {
    const { short } = run
    const cases = providerCases.filter(({ isLong }) => !short || !isLong)
    const provider = await startFakeModelServer()
    run.atEnd(() => provider.close())
    const came = new Map<string, number[]>()
    let isHealed = false
    provider.always((request) => {
      const input = lastUserText(request.body)
      came.set(input, [...(came.get(input) ?? []), performance.now()])
      const one = cases[caseOf(input)]
      return isHealed || !one ? { do: 'answer', text: 'Well again.' } : one.behave(request)
    })
    const slots = short ? 32 : 64
    const env = { CADRE_PROVIDER_EDGE_BASE_URL: provider.base_url, CADRE_WORKER_SLOTS: String(slots) }
    const environment = await startEnvironment(run, { apis: 1, rate: 10, taskCallers: 2, env })
    const memory = await watchMemory(environment.cluster.there('worker').map(({ process }) => process.pid!))
    const given = await giveAll(environment, cases, short)
    const began = performance.now()
    const ended = await untilEnded(environment, given, short ? end_ms * 2 : endLong_ms)
    const took_s = ((performance.now() - began) / 1000).toFixed(0)
    await memory.stop()

    checkEnds(run, cases, given, ended, came)
    checkWaits(run, cases, given, came)
    run.holds(
      'R14',
      `memory of a worker: ${Math.round(memory.growth() / mebibyte)} MiB more at its most, ${given.length} tasks in ${took_s} s`,
      memory.growth() > slots * slotMax_bytes ? [`more than ${(slots * slotMax_bytes) / mebibyte} MiB`] : [],
    )
    await checkAgents(run, environment, given, ended)
    isHealed = true
    await checkRecovery(run, environment, cases, given)
    await holdToPromises(run, environment)
  },
}

const caseOf = (input: string): number => Number(/^case (\d+),/.exec(input)?.[1] ?? -1)

/** Silent calls belong to a separate project: a project has a share of all slots, and they take the whole of it. */
function caller(
  { cluster, tenants }: Environment,
  isSilent: boolean,
): (method: string, path: string, body?: object) => Promise<Reply> {
  const { callers, project } = tenants[isSilent ? 1 : 0]!
  const send = sender(cluster.url()!, callers[0]!.api_key)
  return (method, path, body) => send(method, `${project}${path}`, body ? { body } : {})
}

/** Creates the tasks of each case: five of an agent at most, so that all of them have begun before it is put into `error`. */
async function giveAll(environment: Environment, cases: readonly ProviderCase[], short: boolean): Promise<Given[]> {
  const given: Given[] = []
  for (const [index, one] of cases.entries()) {
    const { config } = one
    const call = caller(environment, !isFast(one))
    // The first one has enough to put its agent into `error` in the short form too.
    let left = !short ? 50 : index === 0 ? failuresMax : 3
    for (let number = 0; left > 0; number++) {
      const made = await call('POST', '/agents', {
        name: `edge-${index}-${number}`,
        config: { model: `edge/case-${index}`, tools: ['current_time'], ...config },
      })
      if (made.status !== 201) throw new Error(JSON.stringify(made.body))
      const agent: string = made.body.id
      for (let i = 0; i < Math.min(left, failuresMax); i++) {
        const input = `case ${index}, agent ${number}, task ${i}`
        const { status, body } = await call('POST', `/agents/${agent}/tasks`, { input })
        if (status !== 201) throw new Error(JSON.stringify(body))
        given.push({ id: body.id, agent, index, input })
      }
      left -= failuresMax
    }
  }
  return given
}

/** What became of each task that ended within the patience. */
async function untilEnded(
  { sql }: Environment,
  given: readonly Given[],
  patience_ms: number,
): Promise<Map<string, Ended>> {
  const end = performance.now() + patience_ms
  for (;;) {
    const rows = await sql<Ended & { id: string }>`
      select id, status, error->>'code' as code, (extract(epoch from finished_at - created_at) * 1000)::float8 as took_ms
      from task where id = any(${given.map(({ id }) => id)}) and finished_at is not null`
    if (rows.length === given.length || performance.now() > end) return new Map(rows.map((row) => [row.id, row]))
    await delay(pollInterval_ms)
  }
}

/** Agents that were put into `error` are restarted; then every agent does its next task. */
async function checkRecovery(
  run: Run,
  environment: Environment,
  cases: readonly ProviderCase[],
  given: readonly Given[],
): Promise<void> {
  const agents = new Map(given.map(({ agent, index }) => [agent, index]))
  const again: Given[] = []
  for (const [agent, index] of agents) {
    const call = caller(environment, !isFast(cases[index]!))
    const { body } = await call('GET', `/agents/${agent}`)
    if (body.status === 'error') await call('POST', `/agents/${agent}/restart`)
    const { body: task } = await call('POST', `/agents/${agent}/tasks`, { input: 'Are you well?' })
    again.push({ id: task.id, agent, index: -1, input: '' })
  }
  const ended = await untilEnded(environment, again, end_ms)
  const wrong = again.flatMap(({ id }) => {
    const end = ended.get(id)
    return end?.status === 'completed' ? [] : [`${end?.status ?? 'no end'} ${end?.code ?? ''}`]
  })
  run.holds('R7', `${agents.size} agents do their next task once the provider is well`, wrong)
}
