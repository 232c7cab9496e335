import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { CredentialKind, Operation } from '#contract/core/operation.ts'
import { operations } from '#contract/operations.ts'
import type { Scope } from '#contract/core/scopes.ts'
import { makeKey, makePerson, makeSession, makeToken, type Credential, type Person } from '../actors.ts'
import { assertDeclared } from './declared.ts'
import { type Reply, type SendOptions, type TestService } from '../harness.ts'
import { shareTestService } from '../shared-service.ts'
import { sample } from '../long-run.ts'
import { Samples } from './samples.ts'

const guarded = operations.filter(({ credentials }) => credentials.length > 0)
const past = '2020-01-01T00:00:00.000Z'
const everything: Scope[] = ['admin']

let test: TestService
let samples: Samples
before(async () => {
  test = await shareTestService()
  samples = await Samples.make(test)
})
after(() => test.stop())

/** Credentials that are no longer valid, or only look valid. Each is of a user of the samples' organization. */
const spent: Record<string, { kind: CredentialKind; make(person: Person): Promise<Credential> }> = {
  'a key that was revoked': {
    kind: 'api_key',
    async make(person) {
      const { id, key } = await makeKey(test, person, everything)
      await test.sql`update api_key set revoked_at = now() where id = ${id}`
      return { key }
    },
  },
  'a key that has expired': {
    kind: 'api_key',
    make: async (person) => ({ key: (await makeKey(test, person, everything, past)).key }),
  },
  'a key of a closed account': {
    kind: 'api_key',
    async make() {
      const person = await makePerson(test, 'owner', samples.owner.org_id)
      const { key } = await makeKey(test, person, everything)
      await test.sql`update app_user set disabled_at = now() where id = ${person.user_id}`
      return { key }
    },
  },
  'a key of a former member': {
    kind: 'api_key',
    async make() {
      const person = await makePerson(test, 'owner', samples.owner.org_id)
      const { key } = await makeKey(test, person, everything)
      await test.sql`delete from member where user_id = ${person.user_id}`
      return { key }
    },
  },
  'a key cut short': {
    kind: 'api_key',
    make: async (person) => ({ key: (await makeKey(test, person, everything)).key.slice(0, -1) }),
  },
  'a key in capitals': {
    kind: 'api_key',
    make: async (person) => ({ key: (await makeKey(test, person, everything)).key.toUpperCase() }),
  },
  'a key as if it were a token': {
    kind: 'token',
    make: async (person) => ({ token: (await makeKey(test, person, everything)).key.slice('cadre_'.length) }),
  },
  'a token that has expired': {
    kind: 'token',
    make: async (person) => ({ token: (await makeToken(test, person, everything, past)).token }),
  },
  'a token whose grant was withdrawn': {
    kind: 'token',
    async make(person) {
      const { grant_id, token } = await makeToken(test, person, everything)
      await test.sql`delete from oauth_grant where id = ${grant_id}`
      return { token }
    },
  },
  'a cookie whose session has ended': {
    kind: 'session',
    async make(person) {
      const { id, cookie } = await makeSession(test, person)
      await test.sql`delete from session where id = ${id}`
      return { cookie }
    },
  },
  'a cookie that was not used for a week': {
    kind: 'session',
    async make(person) {
      const { id, cookie } = await makeSession(test, person)
      await test.sql`update session set idle_expires_at = now() - interval '1 second' where id = ${id}`
      return { cookie }
    },
  },
  'a cookie with another signature': {
    kind: 'session',
    make: async (person) => ({ cookie: `${(await makeSession(test, person)).cookie.slice(0, -4)}AAAA` }),
  },
}

async function ask(operation: Operation, path: string, body: unknown, options: SendOptions): Promise<Reply> {
  const reply = await test.send(operation.method, path, { ...options, ...(body === undefined ? {} : { body }) })
  assertDeclared(operation, reply)
  return reply
}

describe('every operation, to a credential that is good no more', () => {
  const credentials = new Map<string, Credential>()
  before(async () => {
    for (const [name, { make }] of Object.entries(spent)) credentials.set(name, await make(samples.owner))
  })

  for (const operation of sample(guarded, 40)) {
    it(`${operation.id} returns 401 and has no effect`, async () => {
      const { path, body } = await samples.of(operation)
      const written = async (): Promise<number> =>
        (await test.sql<{ count: number }>`select count(*) as count from audit`)[0]!.count
      const before = await written()
      for (const [name, credential] of credentials) {
        const { status, body: answer } = await ask(operation, path, body, { key: null, ...credential })
        assert.equal(status, 401, `${name}: ${JSON.stringify(answer)}`)
      }
      assert.equal(await written(), before)
    })
  }
})

/** Members that a caller must not set, unless an operation takes them by name. */
const foreign = {
  id: 'smuggled-id',
  org_id: 'smuggled-organization',
  organization_id: 'smuggled-organization',
  user_id: 'smuggled-user',
  created_by: 'smuggled-user',
  created_at: '1999-01-01T00:00:00.000Z',
  status: 'smuggled-status',
  scopes: ['smuggled-scope'],
  role: 'smuggled-role',
  plan: 'smuggled-plan',
  email_verified: 'smuggled-mark',
  password_hash: 'smuggled-hash',
  revoked_at: '1999-01-01T00:00:00.000Z',
}

describe('every operation that takes a body', () => {
  for (const operation of sample(
    guarded.filter(({ body }) => body !== undefined),
    20,
  )) {
    const kind = (['api_key', 'token', 'session', 'lease'] as const).find((one) => operation.credentials.includes(one))!
    it(`${operation.id} ignores or refuses members that it does not define`, async () => {
      const sample = await samples.of(operation)
      const taken = Object.keys(sample.body as object)
      const properties = Object.keys((operation.body as { properties?: object }).properties ?? {})
      const more = Object.entries(foreign).filter(([name]) => !taken.includes(name) && !properties.includes(name))
      const body = { ...Object.fromEntries(more), ...(sample.body as object) }
      const reply = await ask(operation, sample.path, body, await samples.credential(kind))
      assert.doesNotMatch(JSON.stringify(reply.body) ?? '', /smuggled-|1999-01-01/)
      const [kept] = await test.sql<{ count: number }>`
        select (select count(*) from api_key where 'smuggled-scope' = any(scopes) or created_at < '2000-01-01')
          + (select count(*) from agent where id like 'smuggled-%' or created_at < '2000-01-01')
          + (select count(*) from project where org_id like 'smuggled-%' or created_at < '2000-01-01')
          + (select count(*) from app_user where plan <> 'free' or password_hash = 'smuggled-hash') as count`
      assert.equal(kept!.count, 0)
    })
  }
})
