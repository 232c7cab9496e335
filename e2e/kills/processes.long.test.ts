import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { describe, it } from 'node:test'
import { eventually } from '../../server/test/harness.ts'
import { longSizeOf } from '../../server/test/long-run.ts'
import { type RunningService, startProcess, temporaryFolder } from '../process.ts'

/** Kills of a process, each under so many connections; `CADRE_TEST_ROUNDS` chooses. A kill takes 2.5 s of a processor. */
const rounds = Number(process.env['CADRE_TEST_ROUNDS'] ?? longSizeOf({ usual: 6, full: 100 }))
const connections = 50
/** Every connection is answered or closed within this time. */
const end_ms = 5000
const count = 4
/** A process that dies often is started again later and later: a service is used for so many rounds. */
const roundsOfService = 6
const patience_ms = 60_000

/** On a busy machine the one that was found may have ended since. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

describe('a service of several processes, one of which is killed', () => {
  it(`a service of several processes of which one is killed answers or closes each of ${connections} connections within ${end_ms / 1000} s`, async () => {
    const folder = await temporaryFolder()
    const ends: Record<string, number> = {}
    let longest_ms = 0
    try {
      for (let done = 0; done < rounds;) {
        const service = await startProcess(
          { CADRE_DATA_DIR: folder.path, CADRE_LOG_LEVEL: 'info', CADRE_RATE_LIMITS: 'off' },
          { args: ['--processes', String(count)] },
        )
        try {
          for (let round = 0; round < roundsOfService && done < rounds; round++, done++) {
            const alive = await livingProcesses(service)
            const asked = Array.from({ length: connections }, () => ask(`${service.url}/livez`))
            killIfThere(alive[done % alive.length]!)
            // Those that come right after the kill meet the process that is gone, too.
            asked.push(...Array.from({ length: connections }, () => ask(`${service.url}/livez`)))
            for (const { end, took_ms } of await Promise.all(asked)) {
              ends[end] = (ends[end] ?? 0) + 1
              longest_ms = Math.max(longest_ms, took_ms)
            }
            assert.equal(ends['hangs'] ?? 0, 0, `round ${done + 1}: ${JSON.stringify(ends)}`)
          }
        } finally {
          await service.end()
        }
      }
    } finally {
      await folder.remove()
    }
    console.log(`${rounds} kills: ${JSON.stringify(ends)}, the longest took ${longest_ms.toFixed(0)} ms`)
    assert.ok((ends['answered'] ?? 0) > 0)
  })
})

/** Processes that serve, once there are at least two. */
async function livingProcesses(service: RunningService): Promise<number[]> {
  const living = (): number[] =>
    service
      .output()
      .split('\n')
      .filter((line) => line.includes('a process of the service is ready'))
      .map((line) => Number(JSON.parse(line).pid))
      .filter(isAlive)
  await eventually(async () => living().length >= 2, patience_ms)
  return living()
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** A request over a new connection, and how that ended. */
function ask(url: string): Promise<{ end: 'answered' | 'closed' | 'hangs'; took_ms: number }> {
  const began = performance.now()
  return new Promise((resolve) => {
    const done = (end: 'answered' | 'closed' | 'hangs'): void => {
      clearTimeout(timer)
      asked.destroy()
      resolve({ end, took_ms: performance.now() - began })
    }
    const asked = httpRequest(url, { agent: false })
    const timer = setTimeout(() => done('hangs'), end_ms)
    asked.on('error', () => done('closed'))
    asked.on('response', (response) => {
      response.on('end', () => done('answered'))
      response.on('error', () => done('closed'))
      response.resume()
    })
    asked.end()
  })
}
