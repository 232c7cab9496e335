import type { Sql } from '../../../server/src/platform/postgres/database.ts'
import type { Reply } from '../../../server/test/harness.ts'
import { sender } from '../../../server/test/harness.ts'
import type { Fault } from '../fault.ts'
import { startEnvironment } from '../environment.ts'
import { holdToPromises, tally } from '../checker/verdict.ts'

const agentsMax = 10
const callers = 16
const short_ms = 10_000
const long_ms = 600_000

export const deadlocks: Fault = {
  id: 'F9',
  title: 'Many change, start, restart and delete the same ten agents',
  hypothesis:
    'Sixteen callers at two processes update, start, pause, stop, restart, delete and make anew the same ten agents of a project, as fast ' +
    'as they are answered. They wait for each other, and PostgreSQL may end one of two that wait for each other for ever: that one is ' +
    'tried again inside. Each answer is one that the contract has, and none is a 500. States only move along their table.',
  async run(run) {
    const { rng, short } = run
    const environment = await startEnvironment(run, { rate: 10, taskCallers: 1, workers: 1 })
    const { callers: keys, project } = environment.tenants[0]!
    const names = Array.from({ length: agentsMax }, (_, i) => `contested-${i}`)
    const ids = new Map<string, string>()
    const answers: string[] = []
    const wrong: string[] = []
    const before = await deadlocksOf(environment.sql)
    const end = performance.now() + (short ? short_ms : long_ms)

    const change = async (number: number): Promise<void> => {
      const own = rng.fork()
      while (performance.now() < end) {
        const services = environment.cluster.there('service')
        const send = sender(services[number % services.length]!.url!, own.pick(keys).api_key)
        const name = own.pick(names)
        const path = `${project}/agents/${ids.get(name) ?? 'agent_00000000000000000000000000'}`
        const kind = own.pick(['update', 'start', 'pause', 'stop', 'restart', 'delete', 'create'] as const)
        const body = { description: `of ${number}`, config: { model: 'builtin/echo' } }
        const replies: Record<typeof kind, () => Promise<Reply>> = {
          update: () => send('PUT', path, { body }),
          start: () => send('POST', `${path}/start`),
          pause: () => send('POST', `${path}/pause`),
          stop: () => send('POST', `${path}/stop`),
          restart: () => send('POST', `${path}/restart`),
          delete: () => send('DELETE', path),
          create: () => send('POST', `${project}/agents`, { body: { name, ...body } }),
        }
        const reply = await replies[kind]()
        if (kind === 'create' && reply.status === 201) ids.set(name, reply.body.id)
        answers.push(`${kind} ${reply.status}`)
        if (![200, 201, 202, 204, 404, 409].includes(reply.status))
          wrong.push(`${kind} was answered ${reply.status}: ${JSON.stringify(reply.body)}`)
      }
    }
    await Promise.all(Array.from({ length: callers }, (_, number) => change(number)))

    const ended = (await deadlocksOf(environment.sql)) - before
    run.say(`${tally(answers.toSorted())}; ${ended} deadlocks ended by PostgreSQL`)
    run.holds('R5', `${answers.length} answers about ${agentsMax} agents are of the contract, none a 500`, wrong)
    await holdToPromises(run, environment)
  },
}

async function deadlocksOf(sql: Sql): Promise<number> {
  const [row] = await sql<{ deadlocks: number }>`
    select deadlocks::int as deadlocks from pg_stat_database where datname = current_database()`
  return row!.deadlocks
}
