import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it } from 'node:test'

/** The lines that a process logs with `makeLog`. */
function logged(...entries: object[]): string[] {
  return loggedBy(`for (const entry of ${JSON.stringify(entries)}) log.info(entry, 'said')`)
}

/** The lines of a program with a `log` that redacts some secrets of the configuration. */
function loggedBy(text: string, secrets: string[] = []): string[] {
  const program = `
    import { keepOut, makeLog } from ${JSON.stringify(new URL('./log.ts', import.meta.url).href)}
    const log = makeLog('info', ${JSON.stringify(secrets)})
    ${text}`
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' })
  return stderr.split('\n').filter(Boolean)
}

it('log lines stay complete and in order, and none is lost, if a process logs many and exits at once', () => {
  const lines = loggedBy(`
    for (let i = 0; i < 200; i++) log.info({ i, text: 'ä'.repeat(i) }, 'many')
    setImmediate(() => {
      for (let i = 200; i < 400; i++) log.info({ i, text: 'ä'.repeat(i) }, 'many')
      process.exit()
    })`)
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).i),
    Array.from({ length: 400 }, (_, i) => i),
  )
})

it('a warning of the same failure is written once a minute, with the number of those withheld before it', () => {
  const lines = loggedBy(`
    let now = 0
    performance.now = () => now
    const refused = (code) => Object.assign(new Error('connect ' + code), { code })
    for (const code of ['57P01', 'ECONNREFUSED', 'ECONNREFUSED'])
      for (const job of ['one', 'two']) log.warn({ err: refused(code), job }, 'a job failed')
    for (const text of ['a bug', 'another bug', 'a bug']) log.warn({ err: new Error(text), job: 'one' }, 'a job failed')
    for (const task_id of ['task_1', 'task_1']) log.warn({ task_id }, 'a task is late')
    for (const code of ['XX000', 'XX000']) log.error({ err: refused(code) }, 'a request failed')
    now = 60_000
    for (const text of ['first', 'second']) log.warn({ err: refused('ECONNREFUSED'), job: 'one' }, 'a job failed')`)
  const failed = lines
    .map((line) => JSON.parse(line))
    .map(({ msg, job, err, repeated }) => [msg, job, err?.message, repeated])
  assert.deepEqual(failed, [
    ['a job failed', 'one', 'connect 57P01', undefined],
    ['a job failed', 'two', 'connect 57P01', undefined],
    ['a job failed', 'one', 'a bug', undefined],
    ['a job failed', 'one', 'another bug', undefined],
    ['a task is late', undefined, undefined, undefined],
    ['a task is late', undefined, undefined, undefined],
    ['a request failed', undefined, 'connect XX000', undefined],
    ['a request failed', undefined, 'connect XX000', undefined],
    ['a job failed', 'one', 'connect ECONNREFUSED', 2],
  ])
})

describe('a log line', () => {
  it('a log line is one JSON object with all its members, without text that looks like a credential (decision D105)', () => {
    const key = `cadre_${'0123456789abcdef'.repeat(2)}`
    const [line = '', ...others] = logged({
      refused: 'Authorization: Bearer canary',
      broken: 'Bearer canary\nx',
      key,
      provider: 'sk-canary-canary',
      last: 'still here',
    })
    assert.deepEqual(others, [])
    const { refused, broken, key: shown, provider, last, msg } = JSON.parse(line)
    assert.deepEqual(
      [refused, broken, shown, provider, last, msg],
      ['Authorization: [redacted]', '[redacted]\nx', '[redacted]', '[redacted]', 'still here', 'said'],
    )
  })

  it('a log line has no secret of the configuration, in any encoding', () => {
    const secrets = ['canary.of+the(service)', 'a "quoted" canary', 'canary.of+the(service) and more', 'short']
    const [line = ''] = loggedBy(
      `log.info({ one: ${JSON.stringify(secrets)}, err: new Error('refused: ' + ${JSON.stringify(secrets[1])}) }, 'kept short')`,
      secrets,
    )
    const { one, err, msg } = JSON.parse(line)
    assert.deepEqual(one, ['[redacted]', '[redacted]', '[redacted]', 'short'])
    assert.deepEqual([err.message, msg], ['refused: [redacted]', 'kept short'])
    assert.doesNotMatch(line, /canary/)
  })

  it('a log line has no secret that was read while the service runs', () => {
    const [before = '', after = '', again = ''] = loggedBy(
      `log.info('the canary-of-a-provider')
      keepOut(log, ['canary-of-a-provider', 'short'])
      setImmediate(() => {
        log.info('the canary-of-a-provider and short')
        keepOut(log, ['a-second-canary'])
        setImmediate(() => log.info('the canary-of-a-provider and a-second-canary'))
      })`,
    )
    assert.deepEqual(
      [before, after, again].map((line) => JSON.parse(line).msg),
      ['the [redacted]', 'the [redacted] and short', 'the [redacted] and [redacted]'],
    )
  })

  it('a log line has an error with its causes, and no other properties of it', () => {
    const lines = loggedBy(`
      const cause = Object.assign(new AggregateError([new Error('first'), new Error('second')], 'both'), { code: 'E1' })
      const answer = Object.assign(new Error('refused', { cause: { access_token: 'canary' } }), { response: 'canary' })
      const circle = new Error('circle')
      circle.cause = circle
      log.warn({ err: new Error('outer', { cause }), }, 'one')
      log.warn({ err: answer }, 'two')
      log.warn({ err: circle }, 'three')
      log.warn({ err: 'a text' }, 'four')`)
    const [one, two, three, four] = lines.map((text) => JSON.parse(text).err)
    assert.deepEqual(
      [one.message, one.cause.code, one.cause.errors.map(({ message }: Error) => message)],
      ['outer', 'E1', ['first', 'second']],
    )
    assert.deepEqual([two.message, two.cause, 'response' in two], ['refused', { type: 'Object' }, false])
    assert.deepEqual([three.message, three.cause.message, four], ['circle', 'circle', 'a text'])
    assert.doesNotMatch(JSON.stringify([one, two].map(({ stack, ...rest }) => rest)), /canary/)
  })
})
