import assert from 'node:assert/strict'
import { pino } from 'pino'
import { after, before, describe, it } from 'node:test'
import type { Operation } from '#contract/core/operation.ts'
import { operations } from '#contract/operations.ts'
import { assertDeclared } from './declared.ts'
import { startTestService, type TestService } from '../harness.ts'
import { rawSend } from '../raw-http.ts'
import { longSample } from '../long-run.ts'
import { Samples } from './samples.ts'

/** OAuth uses forms and redirects, which have separate tests. */
const spoken = operations.filter(({ error_format }) => error_format !== 'oauth')
const long = 100_000
/** Limits end a request long before; this timeout is for a machine that stands still. */
const answer_ms = 10_000

const lines: string[] = []
let test: TestService
let samples: Samples
/** Resources of another organization, which no request may reach. */
let others: Samples
before(async () => {
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  test = await startTestService({}, { log })
  others = await Samples.make(test)
  samples = await Samples.make(test)
})
after(() => test.stop())

describe('in every text of every operation', { timeout: 1_200_000 }, () => {
  it('SQL in any text is never run, and affects no other organization', async () => {
    const tables = await tableNames()
    const theirs = await whatTheyHave()
    const injections = [
      `x'); drop table agent cascade; select pg_sleep(60); -- "`,
      `' or '1'='1`,
      `$1 \${1} ; \\'; delete from project; /* %_\\`,
    ]
    for (const text of longSample(injections, 1)) await everywhere(text)
    assert.deepEqual(await tableNames(), tables)
    assert.deepEqual(await whatTheyHave(), theirs)
  })

  it('line breaks in any text of any operation never create a response header', async () => {
    await everywhere('a\r\nX-Injected: 1\r\nSet-Cookie: injected=1\r\n\r\n<p>', (reply) => {
      assert.equal(reply.headers.get('x-injected'), null)
      assert.doesNotMatch(reply.headers.get('set-cookie') ?? '', /injected/)
    })
  })

  it(`a text of ${long} characters gets a response`, async () => {
    for (const letter of longSample(['a', '@', ' '], 1)) {
      await everywhere(letter.repeat(long), undefined, (operation) => operation.body !== undefined)
    }
  })

  it('a search for a hundred wildcards finds those literal characters and nothing else', async () => {
    const { project_id, key } = samples
    for (const search of ['%'.repeat(100), '%a'.repeat(50), '_'.repeat(100), '\\%'.repeat(50)])
      for (const [path, total] of [
        ['/api/v1/projects', 'total'],
        [`/api/v1/projects/${project_id}/agents`, 'total'],
      ] as const) {
        const { status, body } = await test.send('GET', `${path}?search=${encodeURIComponent(search)}`, { key })
        assert.deepEqual([status, body.pagination[total]], [200, 0], `${path} ${search}`)
      }
  })
})

describe('a request that is made to be dear', { timeout: 120_000 }, () => {
  it('a request whose member names collide in a hash table gets a response like any other', async () => {
    // The hash of a number is the number itself in an unprotected hash table.
    const alike = Array.from({ length: 40_000 }, (_, n) => `${(n + 1) * 65_536}`)
    const { project_id, key } = samples
    const query = alike.slice(0, 1200).join('&')
    assert.equal((await timely(() => test.send('GET', `/api/v1/projects?${query}`, { key }))).status, 400)
    const metadata = Object.fromEntries(alike.map((name) => [name, 1]))
    const path = `/api/v1/projects/${project_id}/agents`
    const reply = await timely(() => test.send('POST', path, { key, body: { name: 'flooded', metadata } }))
    assert.equal(reply.status, 400)
  })

  it('a request with 64 KB of cookies is refused, and one with the longest allowed cookies is fast', async () => {
    const refused = await rawSend(test.url, {
      method: 'GET',
      path: '/api/v1/status',
      headers: { cookie: `a=${'x'.repeat(65_536)}` },
    })
    assert.equal(refused.status, 431)
    const many = Array.from({ length: 1000 }, (_, n) => `cadre${n}=;`).join(' ')
    const { status } = await timely(() =>
      rawSend(test.url, { method: 'GET', path: '/api/v1/projects', headers: { cookie: many } }),
    )
    assert.equal(status, 401)
  })
})

describe('whatever was sent', () => {
  it('every line of the log is one JSON object without terminal control sequences', async () => {
    const path = '/api/v1/%1b%5b31m%9b31m%0a%7b%7d?x=%1b%5b2J%0d%0a'
    await rawSend(test.url, { method: 'GET', path, headers: { 'user-agent': 'x\t\u001b'.slice(0, 2) } })
    assert.ok(lines.length > 100, `${lines.length}`)
    for (const line of lines) {
      assert.equal(typeof JSON.parse(line), 'object')
      // oxlint-disable-next-line no-control-regex -- they are what is looked for
      assert.doesNotMatch(line.slice(0, -1), /[\u0000-\u001f\u007f-\u009f]/)
    }
  })

  it('the service still works after all attacks', async () => {
    assert.equal((await test.send('GET', '/readyz')).status, 200)
    assert.deepEqual(Object.keys(Object.prototype), [])
  })
})

type Reply = Awaited<ReturnType<TestService['send']>>

/** Replaces every text of a valid body, and every query parameter, with a text, one at a time. */
async function everywhere(
  text: string,
  look: (reply: Reply, operation: Operation) => void = () => {},
  isMeant: (operation: Operation) => boolean = () => true,
): Promise<void> {
  let sent = 0
  for (const operation of spoken.filter(isMeant)) {
    const kind = operation.credentials.includes('api_key') ? 'api_key' : 'session'
    const { path, body } = await samples.of(operation)
    const send = async (where: string, path: string, body: unknown): Promise<void> => {
      const credential = await samples.credential(kind)
      const reply = await timely(() => test.send(operation.method, path, { ...credential, body }))
      assert.ok(reply.status < 500, `${operation.id} ${where}: ${reply.status} ${JSON.stringify(reply.body)}`)
      assertDeclared(operation, reply, where)
      look(reply, operation)
      sent++
    }
    for (const name of Object.keys(operation.query?.properties ?? {}))
      // A request that waits for a task is correct, but takes time; URLs have a separate limit.
      if (text.length < 1000) await send(`?${name}`, `${path}?${name}=${encodeURIComponent(text)}`, body)
    for (const name of Object.keys(operation.body?.properties ?? {}))
      await send(name, path, { ...(body as object), [name]: text })
  }
  assert.ok(sent > 50, `${sent}`)
}

async function timely<T>(request: () => Promise<T>): Promise<T> {
  const began = performance.now()
  const answer = await request()
  assert.ok(performance.now() - began < answer_ms)
  return answer
}

async function tableNames(): Promise<unknown[]> {
  return test.sql`select relname, relkind from pg_class where relnamespace = 'public'::regnamespace order by relname`
}

async function whatTheyHave(): Promise<unknown[]> {
  const { org_id } = others.owner
  return test.sql`
    select (select json_agg(p order by p.id) from project p where org_id = ${org_id}) as projects,
      (select json_agg(a order by a.id) from agent a where project_id = ${others.project_id}) as agents,
      (select count(*) from task where project_id = ${others.project_id}) as tasks,
      (select json_agg(k.id order by k.id) from api_key k where org_id = ${org_id}) as keys`
}
