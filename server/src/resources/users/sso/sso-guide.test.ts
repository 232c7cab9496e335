import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { operations } from '#contract/operations.ts'
import { recentSignIn_minutes } from '#contract/accounts/users.ts'
import { startTestService } from '../../../../test/harness.ts'
import { readConfig } from '../../../config/config.ts'

const guide = readFileSync(new URL('../../../../../docs/guides/sso.md', import.meta.url), 'utf8')
const blocks = [...guide.matchAll(/^ *```(\w+)\n(.*?)^ *```/gms)].map(([, kind, text = '']) => ({
  kind,
  text: text.replaceAll(/^ {3}/gm, ''),
}))

/** The variables of an example, with a local folder in place of the documented one. */
function environmentOf(text: string, folder: string): Record<string, string> {
  const lines = text.trim().split('\n')
  return Object.fromEntries(
    lines.map((line) => {
      const [, name = '', value = ''] = /^(\w+)=(.*)$/.exec(line) ?? []
      return [name, value.startsWith('/run/secrets/') ? join(folder, 'secret') : value]
    }),
  )
}

test('the settings that the guide shows are settings, and complete', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'cadre-guide-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'secret'), 'a-secret')
  const environments = blocks.filter(({ text }) => text.startsWith('CADRE_'))
  assert.ok(environments.length >= 4)
  for (const { text } of environments) {
    const env = environmentOf(text, folder)
    const { sso, warnings } = readConfig(env)
    assert.deepEqual([sso.length, warnings], [1, []], text)
  }
  const google = { ...environmentOf(blocks.find(({ text }) => text.includes('accounts.google.com'))!.text, folder) }
  delete google.CADRE_SSO_GOOGLE_ALLOWED_DOMAINS
  assert.throws(() => readConfig(google), /CADRE_SSO_GOOGLE_ALLOWED_DOMAINS/)
})

test('the guide says what the service does', async (t) => {
  const env = {
    CADRE_SSO_OKTA_ISSUER: 'https://example.okta.com',
    CADRE_SSO_OKTA_CLIENT_ID: '0oa1b2c3d4E5F6G7H8i9',
    CADRE_SSO_OKTA_CLIENT_SECRET: 'a-secret',
    CADRE_SSO_OKTA_LABEL: 'Example ID',
  }
  const service = await startTestService(env)
  t.after(() => service.stop())
  const [example = ''] = blocks.filter(({ text }) => text.startsWith('curl')).map(({ text }) => text)
  const { stdout } = await promisify(execFile)('sh', ['-c', example], {
    env: { ...process.env, CADRE: `${service.url}/api/v1` },
  })
  const { providers } = JSON.parse(stdout) as { providers: { name: string; label: string; url: string }[] }
  assert.deepEqual(providers, [{ name: 'okta', label: 'Example ID', url: `${service.url}/api/v1/auth/sso/okta` }])
  assert.ok(guide.includes(`https://cadre.example.com${new URL(providers[0]!.url).pathname}/callback`))
  const page = await service.send('GET', '/login', { key: null })
  assert.ok(page.body.includes('Continue with Example ID') && guide.includes('"Continue with Example ID"'))
  assert.ok(guide.includes(`within the last ${recentSignIn_minutes} minutes`))
  for (const { method, path } of operations.filter(({ tag }) => tag === 'Single sign-on'))
    if (!path.endsWith('/callback')) assert.ok(guide.includes(`| \`${method} ${path}\` |`), path)
})
