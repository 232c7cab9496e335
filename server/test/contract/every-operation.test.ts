import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { buckets } from '#contract/core/limits.ts'
import type { CredentialKind, Operation } from '#contract/core/operation.ts'
import { workGatewayOperations } from '#contract/doors/work-gateway.ts'
import { operations } from '#contract/operations.ts'
import {
  hasScope,
  isAdministrator,
  requiredScope,
  roleAllows,
  roles,
  scopes,
  type Scope,
} from '#contract/core/scopes.ts'
import { makePerson, type Person } from '../actors.ts'
import { assertDeclared } from './declared.ts'
import { IdentityProvider, ssoEnvironment } from '../fakes/identity-provider.ts'
import { startTestService, type Reply, type SendOptions, type TestService } from '../harness.ts'
import { sample } from '../long-run.ts'
import { Samples } from './samples.ts'

/** Why an operation is not part of a loop. This list may only shrink. */
const exceptions = {
  /** Forms and redirects of OAuth have separate tests beside it. */
  oauth: ['authorize', 'issueToken', 'authorizeDevice', 'revokeToken'],
  /** Made for people without an account; closed unless the operator opens it. */
  withoutAccount: ['login', 'signup'],
  /** Of an organization that alone uses the service, which the samples' does not: tested beside the resource. */
  ofInstallation: ['drainWorker', 'resumeWorker'],
}

/** What would end for the owner of the samples what the other operations need. */
const endsForItsUser = ['deleteSessions', 'leaveOrganization']

/** Operations of one loop in a short run; a long run has all of them. */
const someOperations = 40
const some = (all: readonly Operation[]): Operation[] => sample(all, someOperations)

const spoken = operations.filter(({ id }) => !exceptions.oauth.includes(id))
const guarded = operations.filter(({ credentials }) => credentials.length > 0)
/** Operations that succeed for the owner of the samples. */
const done = guarded.filter(({ id }) => !exceptions.ofInstallation.includes(id))
const kinds: CredentialKind[] = ['api_key', 'token', 'session', 'lease']

let test: TestService
let provider: IdentityProvider
let samples: Samples
let foreign: Samples
before(async () => {
  provider = await IdentityProvider.start()
  test = await startTestService(ssoEnvironment({ sample: { provider } }))
  samples = await Samples.make(test)
  foreign = await Samples.make(test)
})
after(async () => {
  await test.stop()
  await provider.stop()
})

/** Sends the request of an operation, and checks that the response is declared. */
async function ask(
  operation: Operation,
  { path, body }: { path: string; body?: unknown },
  options: SendOptions,
): Promise<Reply> {
  const reply = await test.send(operation.method, path, { ...options, ...(body === undefined ? {} : { body }) })
  assertDeclared(operation, reply)
  return reply
}

/** A kind of credential that an operation accepts, preferably that of programs. */
const usualKind = ({ credentials }: Operation): CredentialKind => kinds.find((kind) => credentials.includes(kind))!

const codeOf = (operation: Operation, a: string, b: string): string => (operation.error_format === 'agents' ? a : b)

describe('the service', () => {
  it('the service serves every operation of the contract, and no other API path', () => {
    const declared = [...operations, ...workGatewayOperations].map(
      ({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    )
    const [path, served]: [string[], string[]] = [[], []]
    for (const line of test.service.app.printRoutes({ commonPrefix: false }).split('\n')) {
      const [, indent = '', part = '', methods = ''] = /^([│ ]*)[├└]── (\S+) \((.*)\)$/.exec(line) ?? []
      path.splice(indent.length / 4, Infinity, part)
      const whole = path.join('')
      for (const method of methods.split(', '))
        if (method !== 'HEAD' && /^\/(api|oauth2\/(authorize|token|revoke|device)$)/.test(whole))
          served.push(`${method} ${whole}`)
    }
    assert.deepEqual(served.sort(), declared.sort())
  })
})

describe('every operation, without a credential', () => {
  for (const operation of some(guarded)) {
    it(`${operation.id} without a credential is 401`, async () => {
      const { path } = await samples.of(operation)
      const { status, headers, body } = await ask(
        operation,
        { path, body: operation.body ? '{' : undefined },
        { key: null },
      )
      assert.deepEqual([status, body.error.code], [401, codeOf(operation, 'unauthorized', 'UNAUTHORIZED')])
      assert.equal(headers.get('www-authenticate'), 'Bearer realm="cadre"')
    })
  }

  for (const operation of operations.filter(
    ({ credentials, error_format }) => credentials.length === 0 && error_format === 'control',
  )) {
    it(`${operation.id} is served without a credential`, async () => {
      assert.equal(
        (await ask(operation, { path: operation.path }, { key: null })).status,
        operation.responses[0]!.status,
      )
    })
  }
})

describe('every operation, to each kind of credential', () => {
  for (const operation of some(done)) {
    for (const kind of kinds) {
      const allowed = operation.credentials.includes(kind)
      it(`${operation.id} ${allowed ? 'serves' : 'refuses'} a credential of kind ${kind}`, async () => {
        const person = endsForItsUser.includes(operation.id) ? await makePerson(test) : samples.owner
        const credential = await samples.credential(kind, person)
        const { status, body } = await ask(operation, await samples.of(operation, person), credential)
        if (allowed)
          assert.ok(
            operation.responses.some((response) => response.status === status),
            `${status} ${JSON.stringify(body)}`,
          )
        else
          assert.deepEqual(
            [status, body.error.code, 'required_scopes' in body.error],
            [403, codeOf(operation, 'insufficient_permissions', 'FORBIDDEN'), false],
          )
      })
    }
  }
})

describe('every operation, to each scope alone (decision D73)', () => {
  for (const operation of some(done)) {
    const required = operation.scope
    // What takes no key takes a token; what takes neither asks for no scope.
    const kind = operation.credentials.includes('api_key') ? 'api_key' : 'token'
    if (required === null || !operation.credentials.includes(kind)) continue
    it(`${operation.id} is served with ${scopes.filter((scope) => hasScope([scope], required)).join(', ')} and nothing else`, async () => {
      // The required scope, and in a short run two others.
      const asked = new Set<Scope>([requiredScope(required), ...sample(scopes, 2)])
      for (const scope of asked) {
        const person = endsForItsUser.includes(operation.id) ? await makePerson(test) : samples.owner
        const { status, body } = await ask(
          operation,
          await samples.of(operation, person),
          await samples.credential(kind, person, [scope]),
        )
        if (hasScope([scope], required)) {
          assert.ok(status < 300, `${scope} ${status} ${JSON.stringify(body)}`)
          continue
        }
        assert.deepEqual([status, body.error.code], [403, codeOf(operation, 'insufficient_scope', 'FORBIDDEN')], scope)
        assert.deepEqual(body.error.required_scopes, [requiredScope(required)])
        assert.deepEqual(body.error.details, { required_scopes: [requiredScope(required)], provided_scopes: [scope] })
      }
    })
  }
})

describe('every operation, to each role (decision D70)', () => {
  for (const operation of some(done.filter(({ credentials }) => credentials.includes('api_key')))) {
    it(`${operation.id} is served only to ${roles.filter((role) => roleAllows(role, operation.scope)).join(', ')}`, async () => {
      for (const role of roles) {
        const person = await makePerson(test, role, samples.owner.org_id)
        const { status, body } = await ask(
          operation,
          await samples.of(operation, person),
          await samples.credential('api_key', person),
        )
        const allowed = roleAllows(role, operation.scope) && (!operation.administrators || isAdministrator(role))
        if (allowed) assert.ok(status < 300, `${role} ${status} ${JSON.stringify(body)}`)
        else
          assert.deepEqual(
            [status, body.error.code, 'required_scopes' in body.error],
            [403, codeOf(operation, 'insufficient_permissions', 'FORBIDDEN'), false],
            role,
          )
      }
    })
  }
})

describe('every operation, to a stranger (decision D74)', () => {
  // An identity provider belongs to the operator, and is public.
  const named = guarded.filter(({ path, id }) => /\{(?!provider\})/.test(path) || id === 'launchAgent')
  /** A complete response without the requested identifier. */
  const reportOf = ({ status, body }: Reply): unknown => {
    const { request_id: _, timestamp: __, ...error } = body.error
    return { status, ...error, details: { ...error.details, resource_id: '' } }
  }

  for (const operation of some(named)) {
    it(`${operation.id} returns the same 404 as for a missing resource`, async () => {
      const owner: Person = foreign.owner
      const kind = usualKind(operation)
      const credential = await foreign.credential(kind, owner)
      const theirs = await samples.of(operation)
      const stranger = await ask(operation, theirs, credential)
      const nothing = await ask(
        operation,
        await samples.missing(operation, theirs, operation.path.includes('{project_id}') ? 'project_id' : undefined),
        credential,
      )
      assert.equal(stranger.status, 404)
      assert.deepEqual(reportOf(stranger), reportOf(nothing))
    })
  }

  for (const operation of some(named.filter(({ params }) => Object.keys(params ?? {}).length > 1))) {
    it(`${operation.id} finds nothing of another project in a project of the caller's own`, async () => {
      const credential = await foreign.credential(usualKind(operation), foreign.owner)
      const theirs = await samples.of(operation)
      const path = theirs.path.replace(`proj_${samples.project_id}`, `proj_${foreign.project_id}`)
      const stranger = await ask(operation, { ...theirs, path }, credential)
      const nothing = await ask(operation, await samples.missing(operation, { ...theirs, path }), credential)
      assert.equal(stranger.status, 404)
      assert.deepEqual(reportOf(stranger), reportOf(nothing))
    })
  }
})

describe('every operation, over its limit', () => {
  async function spend(subject: string, bucket: string): Promise<void> {
    await test.sql`
      insert into rate_window (subject, bucket, hour_start, hour_used, minute_start, minute_used, admitted)
      values (${subject}, ${bucket}, date_trunc('hour', now(), 'UTC') + interval '1 hour', 1000000000, date_trunc('minute', now(), 'UTC') + interval '1 minute', 1000000000, true)
      on conflict (subject, bucket) do update set hour_start = excluded.hour_start, hour_used = excluded.hour_used,
        minute_start = excluded.minute_start, minute_used = excluded.minute_used`
  }

  for (const operation of some(spoken.filter(({ bucket }) => bucket !== null))) {
    it(`${operation.id} returns 429 before any other check`, async () => {
      const bucket = operation.bucket!
      const subject = buckets[bucket].per === 'credential' ? samples.owner.user_id : 'ip:127.0.0.1'
      await spend(subject, bucket)
      try {
        const cookie = operation.credentials.length > 0 ? await samples.credential('session') : { key: null }
        const { path } = await samples.of(operation)
        const { status, headers, body } = await ask(operation, { path, body: operation.body ? '{' : undefined }, cookie)
        assert.deepEqual(
          [status, body.error.code],
          [429, codeOf(operation, 'rate_limit_exceeded', 'RATE_LIMIT_EXCEEDED')],
        )
        for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after'])
          assert.match(headers.get(name) ?? '', /^\d+$/, name)
        assert.equal(headers.get('x-ratelimit-remaining'), '0')
        assert.equal(body.error.details.bucket, bucket)
      } finally {
        await test.sql`delete from rate_window where subject = ${subject} and bucket = ${bucket}`
      }
    })
  }
})

describe('every operation that reads', () => {
  for (const operation of some(guarded.filter(({ method }) => method === 'GET'))) {
    it(`${operation.id} responds to HEAD like to GET, without a body`, async () => {
      const credential = await samples.credential(usualKind(operation))
      const { path } = await samples.of(operation)
      const { status, headers, body } = await test.send('HEAD', path, credential)
      assert.deepEqual([status, body], [operation.responses[0]!.status, ''])
      assert.match(headers.get('x-request-id') ?? '', /^req_/)
    })
  }
})
