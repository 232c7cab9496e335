import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { ConfigError, type Environment, readConfig } from './config.ts'

const complete = {
  CADRE_SSO_OKTA_ISSUER: 'https://id.example.com/',
  CADRE_SSO_OKTA_CLIENT_ID: 'cadre',
  CADRE_SSO_OKTA_CLIENT_SECRET: 'a secret'.replace(' ', '-'),
}

function faultsOf(env: Environment): (readonly [string, string])[] {
  try {
    readConfig(env)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(({ name, problem }) => [name, problem] as const)
    throw error
  }
  return assert.fail('the configuration was accepted')
}

it('the variables of an identity provider make its configuration, with the issuer unchanged', () => {
  assert.deepEqual(readConfig(complete).sso, [
    {
      name: 'okta',
      label: 'Okta',
      issuer: 'https://id.example.com/',
      client_id: 'cadre',
      client_secret: 'a-secret',
      scopes: 'openid email profile',
      allowed_domains: [],
      groups_claim: 'groups',
      group_roles: new Map(),
    },
  ])
  const more = readConfig({
    ...complete,
    CADRE_SSO_MY_CORP_ISSUER: 'http://localhost:8180/realms/staff',
    CADRE_SSO_MY_CORP_CLIENT_ID: 'cadre',
    CADRE_SSO_MY_CORP_CLIENT_SECRET: 'another-secret',
    CADRE_SSO_MY_CORP_LABEL: 'My Corp',
    CADRE_SSO_MY_CORP_SCOPES: 'openid  email',
    CADRE_SSO_MY_CORP_CLIENT_AUTHENTICATION: 'post',
    CADRE_SSO_MY_CORP_JOIN_AS: 'viewer',
    CADRE_SSO_MY_CORP_ALLOWED_DOMAINS: 'Example.com, example.org',
  })
  assert.deepEqual(
    [more.sso.map(({ name }) => name), more.sso[0], more.warnings],
    [
      ['my-corp', 'okta'],
      {
        name: 'my-corp',
        label: 'My Corp',
        issuer: 'http://localhost:8180/realms/staff',
        client_id: 'cadre',
        client_secret: 'another-secret',
        scopes: 'openid email',
        client_authentication: 'post',
        groups_claim: 'groups',
        group_roles: new Map(),
        join_as: 'viewer',
        allowed_domains: ['example.com', 'example.org'],
      },
      [],
    ],
  )
})

it('the secret of an identity provider may come from a file', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cadre-sso-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'secret'), 'from-a-file\n')
  const env = {
    ...complete,
    CADRE_SSO_OKTA_CLIENT_SECRET: '',
    CADRE_SSO_OKTA_CLIENT_SECRET_FILE: join(folder, 'secret'),
  }
  assert.equal(readConfig(env).sso[0]?.client_secret, 'from-a-file')
})

it('all missing settings of an identity provider are reported together', () => {
  assert.deepEqual(
    faultsOf({ CADRE_SSO_OKTA_LABEL: 'Okta', CADRE_SSO_B_CLIENT_SECRET: 'x', CADRE_SSO_B_CLIENT_ID: 'x' }),
    [
      ['CADRE_SSO_B_ISSUER', 'it is unset, but other settings of this provider are set'],
      ['CADRE_SSO_OKTA_ISSUER', 'it is unset, but other settings of this provider are set'],
      ['CADRE_SSO_OKTA_CLIENT_ID', 'it is unset, but other settings of this provider are set'],
      ['CADRE_SSO_OKTA_CLIENT_SECRET', 'it is unset, but other settings of this provider are set'],
    ],
  )
})

it('an invalid setting of an identity provider is an error', () => {
  for (const [suffix, value] of [
    ['ISSUER', 'http://id.example.com'],
    ['ISSUER', 'https://id.example.com/.well-known/openid-configuration'],
    ['ISSUER', 'https://id.example.com/?tenant=1'],
    ['ISSUER', 'https://id.example.com/#'],
    ['ISSUER', 'https://user:secret@id.example.com'],
    ['ISSUER', 'id.example.com'],
    ['CLIENT_ID', 'with a space'],
    ['LABEL', 'x'.repeat(41)],
    ['LABEL', 'two\nlines'],
    ['SCOPES', 'email profile'],
    ['SCOPES', 'openid "quoted"'],
    ['JOIN_AS', 'owner'],
    ['CLIENT_AUTHENTICATION', 'none'],
    ['ALLOWED_DOMAINS', 'example.com,@example.org'],
    ['ALLOWED_DOMAINS', 'localhost'],
  ] as const) {
    const faults = faultsOf({ ...complete, [`CADRE_SSO_OKTA_${suffix}`]: value })
    assert.deepEqual(
      faults.map(([name]) => name),
      [`CADRE_SSO_OKTA_${suffix}`],
      `${suffix} ${value}`,
    )
  }
})

it('two providers cannot have the same issuer', () => {
  const twin = Object.fromEntries(
    Object.entries(complete).map(([name, value]) => [name.replace('OKTA', 'TWIN'), value]),
  )
  assert.deepEqual(faultsOf({ ...complete, ...twin }), [
    ['CADRE_SSO_TWIN_ISSUER', 'the provider "okta" has the same one'],
  ])
})

it('a provider with open registration needs an allow list of domains to join', () => {
  const open = { ...complete, CADRE_SSO_OKTA_ISSUER: 'https://accounts.google.com', CADRE_SSO_OKTA_JOIN_AS: 'member' }
  assert.deepEqual(
    faultsOf(open).map(([name]) => name),
    ['CADRE_SSO_OKTA_JOIN_AS'],
  )
  assert.equal(readConfig({ ...open, CADRE_SSO_OKTA_ALLOWED_DOMAINS: 'example.com' }).sso[0]?.join_as, 'member')
})

it('an unknown variable of a provider is reported', () => {
  const { warnings, sso } = readConfig({ CADRE_SSO_OKTA_ISSUR: 'https://id.example.com', CADRE_SSO_ISSUER: 'x' })
  assert.deepEqual(sso, [])
  assert.equal(warnings.length, 2)
})
