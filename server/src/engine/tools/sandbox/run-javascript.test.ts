import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { pino } from 'pino'
import { sample } from '../../../../test/long-run.ts'
import { toolCall } from '../../../../test/tool-call.ts'
import { runJavascript } from './run-javascript.ts'
import { makeSandboxes } from './sandbox.ts'

const tool = runJavascript(makeSandboxes(pino({ level: 'silent' })), { KEY: 'a value', TWO: 'line\nbreak' })
async function run(code: string, timeout_seconds = 5) {
  const { sandbox_seconds, ...answer } = await tool.call({ code, timeout_seconds }, toolCall())
  assert.ok(sandbox_seconds !== undefined && sandbox_seconds >= 0)
  return answer
}

describe('run_javascript', () => {
  for (const [code, content] of [
    ['const a = [1, 2, 3]\na.map((x) => x * 2)', '[2,4,6]'],
    ['"text as it is"', 'text as it is'],
    ['return 6 * 7', '42'],
    ['const x = await Promise.resolve(6); return { x }', '{"x":6}'],
    ['(async () => "awaited")()', 'awaited'],
    ['undefined', 'undefined'],
    ['10n ** 20n', '"100000000000000000000"'],
    ['env.KEY + env.TWO', 'a valueline\nbreak'],
    ['JSON.parse("[1]")', '[1]'],
    ['const a = []; a.push(a); a', '[object that is not JSON: circular reference]'],
    ['console.log("one", { a: 1 }); console.error("two"); 3', 'console:\none {"a":1}\ntwo\n\nresult:\n3'],
    ['Promise.resolve().then(() => console.log("later")); 1', 'console:\nlater\n\nresult:\n1'],
    ['JSON.stringify = () => "changed"; String.prototype.slice = null; ({ a: 1 })', '{"a":1}'],
  ] as const)
    it(`run_javascript returns the value of ${code}`, async () => assert.deepEqual(await run(code), { content }))

  for (const [code, message] of [
    ['throw new TypeError("no")', 'TypeError: no (run.js:1)'],
    ['1;\nnull.x', "TypeError: cannot read property 'x' of null (run.js:2)"],
    ['throw { a: 1 }', 'Thrown: {"a":1}'],
    ['await Promise.reject(new Error("rejected"))', 'Error: rejected (run.js:1)'],
    ['x =', "SyntaxError: unexpected token in expression: '' (run.js:1)"],
    ['new Promise(() => {})', 'The result is a promise that never settles. The sandbox has no timers.'],
  ] as const)
    it(`run_javascript says what is wrong with ${code.replace('\n', ' ')}`, async () =>
      assert.deepEqual(await run(code), {
        content: `error:\n${message}`,
        error: { code: 'javascript_error', message },
      }))

  it('the console output before an error is returned', async () => {
    const { content, error } = await run('console.log("so far"); throw new Error("here")')
    assert.equal(content, 'console:\nso far\n\nerror:\nError: here (run.js:1)')
    assert.equal(error?.code, 'javascript_error')
  })

  it('a program has no access to its host', async () => {
    const names = [
      'process',
      'require',
      'fetch',
      'setTimeout',
      'setInterval',
      'WebAssembly',
      'Buffer',
      'XMLHttpRequest',
    ]
    const { content } = await run(`[${names.map((name) => `typeof ${name}`)}].join()`)
    assert.equal(content, names.map(() => 'undefined').join())
    for (const code of [
      'import("node:fs")',
      'import fs from "node:fs"; fs',
      'globalThis.constructor.constructor("return process")()',
      '(function () {}).constructor("return this.process.env")()',
      'console.log.constructor("return process")()',
    ])
      assert.equal((await run(code)).error?.code, 'javascript_error', code)
  })

  it('a program leaves nothing for the next one', async () => {
    await run('globalThis.left = 1; Array.prototype.left = 1; 1')
    assert.equal((await run('typeof left + typeof [].left')).content, 'undefinedundefined')
  })

  it('a program cannot change the environment of others', async () => {
    await run('try { env.KEY = "changed" } catch {} ; 1')
    assert.equal((await run('env.KEY')).content, 'a value')
  })
})

describe('a program without an end', () => {
  const endless = [
    'while (true) {}',
    '({ toJSON() { for (;;); } })',
    '({ get a() { for (;;); } })',
    'const e = new Error(); Object.defineProperty(e, "message", { get() { for (;;); } }); throw e',
    '/(a*)*b/.test("a".repeat(50))',
    'for (;;) console.log("x".repeat(1000))',
  ]
  for (const code of sample(endless, 2))
    it(`a program without an end times out: ${code}`, async () => {
      const began = performance.now()
      const { error } = await run(code, 0.3)
      assert.equal(error?.code, 'timed_out')
      assert.match(error.message, /longer than 0\.3 seconds/)
      assert.ok(performance.now() - began < 8000)
    })

  it('a program that is ended returns its console output', async () => {
    // On a busy machine the program has written nothing in a short time, and has nothing to give.
    let content = ''
    for (const timeout_seconds of [0.3, 3, 30])
      if (!content.startsWith('console:')) ({ content } = await run('console.log("begun"); for (;;);', timeout_seconds))
    assert.match(content, /^console:\nbegun\n/)
  })

  it('a program ends as soon as its call is aborted', async () => {
    const abort = new AbortController()
    const reason = new Error('the task was canceled')
    const call = tool.call({ code: 'for (;;);', timeout_seconds: 60 }, toolCall({ signal: abort.signal }))
    const began = performance.now()
    abort.abort(reason)
    await assert.rejects(call, reason)
    assert.ok(performance.now() - began < 5000)
    assert.equal((await run('1 + 1')).content, '2')
  })

  it('an aborted call does not start its program, not even after it waited for others', async () => {
    const reason = new Error('too late')
    await assert.rejects(tool.call({ code: '1' }, toolCall({ signal: AbortSignal.abort(reason) })), reason)
    const abort = new AbortController()
    const endless = [1, 2].map(() => tool.call({ code: 'for (;;);' }, toolCall({ signal: abort.signal })))
    const leaves = new AbortController()
    const waits = tool.call({ code: '1' }, toolCall({ signal: leaves.signal }))
    leaves.abort(reason)
    await assert.rejects(waits, reason)
    const next = run('"my turn"')
    abort.abort(reason)
    await Promise.all(endless.map((call) => assert.rejects(call, reason)))
    assert.equal((await next).content, 'my turn')
  })
})

describe('a program that takes too much', () => {
  const greedy = [
    'const a = []; for (;;) a.push(new Array(1e6).fill(1))',
    'const a = []; for (;;) a.push(new Uint8Array(1e6))',
    'const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })',
    'new ArrayBuffer(1e9)',
    'const f = () => Promise.resolve().then(f); f()',
  ]
  for (const code of sample(greedy, 2))
    it(`a program that uses too much memory fails, and the service does not: ${code}`, async () => {
      const before = process.memoryUsage.rss()
      const { error } = await run(code, 30)
      assert.equal(error?.code, 'out_of_memory', error?.message)
      assert.ok(process.memoryUsage.rss() - before < 250e6)
    })

  for (const [code, expected] of [
    ['const f = () => f() + 1; f()', 'javascript_error'],
    ['JSON.parse("[".repeat(1e6))', 'javascript_error'],
    ['eval("(".repeat(1e5) + ")".repeat(1e5))', 'sandbox_crashed'],
  ] as const)
    it(`a program that recurses too deep fails with an error: ${code}`, async () =>
      assert.equal((await run(code)).error?.code, expected))

  it('the value and the console of a program are cut to their bounds', async () => {
    assert.equal((await run('"x".repeat(1e7)')).content.length, 50_000)
    const { content } = await run('for (let i = 0; i < 5000; i++) console.log("x".repeat(100)); 1', 60)
    assert.ok(content.length < 51_000)
    assert.match(content, /result:\n1$/)
  })
})
