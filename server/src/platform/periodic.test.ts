import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it, mock } from 'node:test'
import { startPeriodic } from './periodic.ts'

describe('a periodic job', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'setInterval'] }))
  afterEach(() => mock.timers.reset())

  /** A job whose runs are ended by the test. */
  const start = (options: { every_ms: number; first_ms?: number }) => {
    const runs: PromiseWithResolvers<void>[] = []
    const errors: unknown[] = []
    const job = startPeriodic(
      () => {
        const run = Promise.withResolvers<void>()
        runs.push(run)
        return run.promise
      },
      { ...options, onError: (error) => errors.push(error) },
    )
    return { job, runs, errors }
  }
  const settled = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }

  it('a periodic job runs first after first_ms, and then every every_ms', async () => {
    const { job, runs } = start({ every_ms: 100, first_ms: 10 })
    mock.timers.tick(9)
    assert.equal(runs.length, 0)
    mock.timers.tick(1)
    assert.equal(runs.length, 1)
    runs[0]!.resolve()
    await settled()
    mock.timers.tick(100)
    assert.equal(runs.length, 2)
    runs[1]!.resolve()
    await job.stop()
  })

  it('a periodic job runs once at a time, and once more if now() is called during a run', async () => {
    const { job, runs } = start({ every_ms: 100 })
    mock.timers.tick(100)
    mock.timers.tick(300)
    assert.equal(runs.length, 1)
    job.now()
    job.now()
    assert.equal(runs.length, 1)
    runs[0]!.resolve()
    await settled()
    assert.equal(runs.length, 2)
    runs[1]!.resolve()
    await settled()
    assert.equal(runs.length, 2)
    await job.stop()
  })

  it('a periodic job reports a failed run, and runs again at the next interval', async () => {
    const { job, runs, errors } = start({ every_ms: 100 })
    mock.timers.tick(100)
    runs[0]!.reject(new Error('the database is away'))
    await settled()
    assert.equal(errors.length, 1)
    mock.timers.tick(100)
    assert.equal(runs.length, 2)
    runs[1]!.resolve()
    await job.stop()
  })

  it('the stop of a periodic job waits for the current run, and none follows', async () => {
    const { job, runs, errors } = start({ every_ms: 100 })
    job.now()
    let hasStopped = false
    const stopped = job.stop().then(() => (hasStopped = true))
    await settled()
    assert.equal(hasStopped, false)
    runs[0]!.reject(new Error('stopped'))
    await stopped
    job.now()
    mock.timers.tick(1000)
    assert.deepEqual([runs.length, errors.length], [1, 0])
  })
})
