import assert from 'node:assert/strict'
import fc from 'fast-check'
import { after, before, describe, it } from 'node:test'
import type { Operation } from '#contract/core/operation.ts'
import { operations } from '#contract/operations.ts'
import { assertDeclared } from './declared.ts'
import { type TestService } from '../harness.ts'
import { shareTestService } from '../shared-service.ts'
import { longSizeOf } from '../long-run.ts'
import { Samples } from './samples.ts'

/** Number of requests for each property, so that the file ends in seconds. A seed in the environment repeats a run. */
const runs = Number(process.env.FUZZ_RUNS ?? longSizeOf({ usual: 100, full: 300 }))
const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31)
/** Sequential runs show which request broke something; concurrent ones would hide it. */
const settings = { numRuns: runs, seed, endOnFailure: false }

let test: TestService
let samples: Samples
before(async () => {
  console.log(`seed ${seed}`)
  test = await shareTestService()
  samples = await Samples.make(test)
})
after(() => test.stop())

/** OAuth uses forms and redirects, which have separate tests. */
const spoken = operations.filter(({ error_format }) => error_format !== 'oauth')
const withBody = spoken.filter(({ body }) => body)

/** Texts of every known problematic kind. */
const oddText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.string({ unit: 'grapheme', maxLength: 200 }),
  fc.constantFrom(
    '',
    ' ',
    '\u0000',
    '\ud800',
    '__proto__',
    'constructor',
    'null',
    'NaN',
    '-1',
    '1e400',
    '\u202e',
    'a'.repeat(3000),
    "' or 1=1 --",
    '${x}',
    '../../..',
    '2026-11-20',
    'admin',
    '%',
    '_',
    '\\',
  ),
)
const oddNumber = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(0, -0, -1, 1.5, 2 ** 31, 2 ** 53, 1e308, 5e-324))
const oddJson = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  oddText,
  oddNumber,
  fc.constantFrom(null, true, false, [], {}, [[]], { a: null }),
)

/** Members that bodies really have, so that invalid values stand beside valid ones. */
const memberNames = [...new Set(withBody.flatMap(({ body }) => Object.keys(body!.properties)))]
const oddBody = fc.oneof(
  fc.dictionary(fc.oneof(fc.constantFrom(...memberNames), oddText), oddJson, { maxKeys: 6 }),
  oddJson,
)

/** Puts unusual values in some places of a valid body, at any depth. */
function mutated(value: unknown): fc.Arbitrary<unknown> {
  const changed = Array.isArray(value)
    ? fc.tuple(...value.map(mutated))
    : typeof value === 'object' && value !== null
      ? fc.record(Object.fromEntries(Object.entries(value).map(([key, member]) => [key, mutated(member)])), {
          requiredKeys: [],
        })
      : fc.constant(value)
  return fc.oneof({ weight: 6, arbitrary: changed }, { weight: 1, arbitrary: oddJson })
}

const kinds = ['api_key', 'session'] as const

/** Sends a request and checks that the response is declared; 404 and 405 of unknown paths are allowed. */
async function holds(
  operation: Operation,
  kind: (typeof kinds)[number],
  path: string,
  options: { body?: unknown; headers?: Record<string, string> },
): Promise<void> {
  const credential = await samples.credential(kind)
  const reply = await test.send(operation.method, path, { ...credential, ...options })
  assert.ok(reply.status < 500, `${operation.id} ${reply.status} ${JSON.stringify(reply.body)}`)
  assert.equal(({} as Record<string, unknown>).polluted, undefined)
  assertDeclared(operation, reply, JSON.stringify(options))
}

describe('whatever is sent', () => {
  it('any body gets a declared response and never an internal error', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...withBody),
        fc.constantFrom(...kinds),
        oddBody,
        async (operation, kind, body) => {
          await holds(operation, kind, (await samples.of(operation)).path, { body: JSON.stringify(body) })
        },
      ),
      settings,
    )
  })

  it('a valid body with any part replaced never gets an internal error', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc
          .constantFrom(...withBody)
          .chain((operation) => fc.tuple(fc.constant(operation), mutated(operation.body_example))),
        fc.constantFrom(...kinds),
        async ([operation, body], kind) => {
          await holds(operation, kind, (await samples.of(operation)).path, { body: JSON.stringify(body) })
        },
      ),
      settings,
    )
  })

  it('any bytes as a body never get an internal error', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...withBody),
        fc.string({ unit: 'binary', maxLength: 300 }),
        oddText,
        async (operation, body, type) => {
          const { path } = await samples.of(operation)
          const headers = { 'content-type': /^[\x21-\x7e]+$/.test(type) ? type : 'application/json' }
          await holds(operation, 'api_key', path, { body, headers })
        },
      ),
      settings,
    )
  })

  it('any query string never gets an internal error', async () => {
    const names = [...new Set(spoken.flatMap(({ query }) => Object.keys(query?.properties ?? {})))]
    const pairs = fc.array(
      fc.tuple(
        fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...names) }, oddText),
        fc.oneof(oddText, oddNumber.map(String), fc.constantFrom('1', 'true', 'name', 'asc', '2026-11-20')),
      ),
      { maxLength: 5 },
    )
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...spoken), pairs, async (operation, query) => {
        const { path, body } = await samples.of(operation)
        // A request that waits for a task is correct, but takes time.
        const search = query
          .filter(([name]) => name !== 'wait')
          .map(([name, value]) => `${encode(name)}=${encode(value)}`)
          .join('&')
        await holds(
          operation,
          operation.credentials.includes('api_key') ? 'api_key' : 'session',
          `${path}?${search}`,
          body === undefined ? {} : { body },
        )
      }),
      settings,
    )
  })

  it('any text as an identifier never gets an internal error', async () => {
    const named = spoken.filter(({ path }) => path.includes('{'))
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...named),
        fc.array(oddText, { minLength: 2, maxLength: 2 }),
        async (operation, ids) => {
          const values = ids.map((id) => encode(id).slice(0, 4000) || 'x')
          const path = operation.path.replaceAll(/\{\w+\}/g, () => values.pop() ?? 'x')
          if (/\/\.{1,2}(\/|$)/.test(path)) return
          const { body } = await samples.of(operation)
          await holds(
            operation,
            operation.credentials.includes('api_key') ? 'api_key' : 'session',
            path,
            body === undefined ? {} : { body },
          )
        },
      ),
      settings,
    )
  })

  it('any headers never get an internal error', async () => {
    const names = [
      'x-organization-id',
      'idempotency-key',
      'if-match',
      'accept',
      'origin',
      'x-request-id',
      'x-forwarded-for',
      'last-event-id',
      'traceparent',
      'accept-encoding',
      'range',
      'expect-ct',
      'prefer',
    ]
    const values = fc.oneof(
      fc.string({
        unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
        maxLength: 300,
      }),
      fc.constantFrom('*', '"1"', '', 'W/"1"', 'a'.repeat(2000)),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...spoken),
        fc.constantFrom(...kinds),
        fc.dictionary(fc.constantFrom(...names), values, { maxKeys: 5 }),
        async (operation, kind, headers) => {
          const { path, body } = await samples.of(operation)
          await holds(operation, kind, path, { headers, ...(body === undefined ? {} : { body }) })
        },
      ),
      settings,
    )
  })

  it('the service still works after all hostile requests', async () => {
    assert.equal((await test.send('GET', '/readyz')).status, 200)
    assert.equal(
      (
        await test.send('GET', `/api/v1/projects/${samples.project_id}/agents/${samples.agent_id}`, {
          key: samples.key,
        })
      ).status,
      200,
    )
    assert.deepEqual(Object.keys(Object.prototype), [])
  })
})

/** Percent-encodes also a lone surrogate, as bytes that are not valid UTF-8. */
function encode(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : '%ED%A0%80'
}
