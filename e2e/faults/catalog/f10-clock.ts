import { setTimeout as delay } from 'node:timers/promises'
import { sender } from '../../../server/test/harness.ts'
import { startProcess } from '../../process.ts'
import { clockJumps as jumps, makeClock, whyNoClock } from '../nemesis/fake-clock.ts'
import type { Fault } from '../fault.ts'
import { startEnvironment } from '../environment.ts'
import { holdToPromises, tally } from '../checker/verdict.ts'

const jump_ms = 4000
const key_s = 3600

export const clockJumps: Fault = {
  id: 'F10',
  title: 'The clock of a process jumps',
  hypothesis:
    'The wall clock of one API process and of one worker jumps by an hour and a day, both ways, and runs half as fast and half again as ' +
    'fast. What is valid is judged by the clock of the database: a key of an hour stays valid, one that has expired stays refused, in ' +
    'the same process. Leases of that worker are neither lost nor held twice, timers go on, and it serves after each jump.',
  isAlone: true,
  cannot: whyNoClock,
  async run(run) {
    const environment = await startEnvironment(run, { workers: 1 })
    const { env, set } = await makeClock(run)
    const [api, worker] = await Promise.all(
      ['api', 'worker'].map((role) =>
        startProcess(
          {
            ...environment.env,
            CADRE_DATA_DIR: `/nowhere/clock-${role}`,
            ...env,
          },
          { args: ['--role', role] },
        ),
      ),
    )
    run.atEnd(() => Promise.all([api!.end('SIGKILL'), worker!.end('SIGKILL')]))

    const { callers, project } = environment.tenants[0]!
    const owner = sender(environment.cluster.url()!, callers[0]!.api_key)
    const make = async (name: string, expires_at: string): Promise<{ id: string; key: string }> => {
      for (;;) {
        const { status, body } = await owner('POST', '/api/v1/auth/api-keys', {
          body: { name, scopes: ['read'], expires_at },
        })
        if (status === 201) return body
        if (status !== 503) throw new Error(`no key: ${JSON.stringify(body)}`)
        await delay(100)
      }
    }
    const valid = await make('good for an hour', new Date(Date.now() + key_s * 1000).toISOString())
    const expired = await make('has expired', new Date(Date.now() + key_s * 1000).toISOString())
    await environment.sql`update api_key set expires_at = now() - interval '1 minute' where id = ${expired.id}`

    const wrong: string[] = []
    const answers: number[] = []
    const all = run.short ? jumps : Array.from({ length: 10 }, () => jumps).flat()
    for (const jump of run.rng.shuffled(all)) {
      await set(jump)
      const end = performance.now() + jump_ms
      while (performance.now() < end) {
        for (const [key, expected] of [
          [valid.key, 200],
          [expired.key, 401],
        ] as const) {
          const { status } = await sender(api!.url, key)('GET', project)
          answers.push(status)
          // A machine that is too busy says so, whatever its clock says.
          if (status !== expected && status !== 503) wrong.push(`${jump}: ${status} in the place of ${expected}`)
        }
        await delay(50)
      }
    }
    await set('+0')
    run.say(tally(answers))
    run.holds('R3', `${answers.length} answers about keys, by the clock of the database`, wrong)
    const left = [api, worker].filter((one) => one!.process.exitCode !== null || one!.process.signalCode !== null)
    run.holds('R10', 'no process ends of its clock', left.length > 0 ? ['a process ended'] : [])
    await holdToPromises(run, environment)
  },
}
