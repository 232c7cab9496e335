import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, describe, it } from 'node:test'
import { buckets } from '#contract/core/limits.ts'
import { envExample } from '../../../tools/gen/gen-env.ts'
import { sections } from './config-settings.ts'
import { ConfigError, type Environment, publicUrl, readConfig } from './config.ts'

const folder = mkdtempSync(join(tmpdir(), 'cadre-config-'))
after(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

function faultsOf(env: Environment): ConfigError {
  try {
    readConfig(env)
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  return assert.fail('the configuration was accepted')
}

describe('configuration', () => {
  it('the configuration is complete without any variable, and every default is allowed', () => {
    const config = readConfig({})
    assert.deepEqual(
      [
        config.port,
        config.host,
        config.data_dir,
        config.signup,
        config.rate_limits,
        config.rate_limits_scale,
        config.worker_slots,
      ],
      [8080, '127.0.0.1', resolve('.cadre'), 'invite', true, 1, 32],
    )
    assert.deepEqual(
      [config.database_url, config.cors_origins, config.providers, config.warnings],
      [undefined, [], [], []],
    )
    for (const setting of Object.values(sections).flatMap((section) => Object.values(section))) {
      if (setting.default !== undefined) assert.notEqual(setting.kind.parse(setting.default), undefined, setting.name)
    }
  })

  it('a public URL may have a path, but no query, fragment or user name', () => {
    const publicUrlOf = (text: string) => readConfig({ CADRE_PUBLIC_URL: text }).public_url
    assert.equal(publicUrlOf('https://example.com/team/cadre/'), 'https://example.com/team/cadre')
    for (const text of [
      'https://example.com/a?b',
      'https://example.com/#a',
      'https://a@example.com',
      'https://example.com//a',
    ])
      assert.throws(() => publicUrlOf(text), /CADRE_PUBLIC_URL/, text)
    assert.throws(() => publicUrlOf('https://example.com/a/../b'), /CADRE_PUBLIC_URL/)
  })

  it('the configuration has the values of variables that are set', () => {
    const config = readConfig({
      PORT: '0',
      HOST: '::',
      CADRE_PUBLIC_URL: 'https://cadre.example.com/',
      CADRE_RATE_LIMITS: 'off',
      CADRE_RATE_LIMITS_SCALE: '0.5',
      CADRE_EGRESS_ALLOW: 'loopback, 10.0.0.0/8,fd00::/8, [::1]:9000,receiver:9000,*.internal.example, ',
      CADRE_TRUSTED_PROXIES: '10.1.2.3,fd00::/8',
      OPENAI_BASE_URL: 'http://127.0.0.1:4010/v1/',
    })
    assert.deepEqual([config.port, config.host, config.public_url], [0, '::', 'https://cadre.example.com'])
    assert.deepEqual([config.rate_limits, config.rate_limits_scale], [false, 0.5])
    assert.deepEqual(config.egress_allow, [
      'loopback',
      '10.0.0.0/8',
      'fd00::/8',
      '[::1]:9000',
      'receiver:9000',
      '*.internal.example',
    ])
    assert.deepEqual(
      [config.trusted_proxies, config.openai_base_url],
      [['10.1.2.3', 'fd00::/8'], 'http://127.0.0.1:4010/v1'],
    )
  })

  it('an empty value counts as unset, also for a required setting', () => {
    const config = readConfig({
      PORT: '',
      CADRE_SECRET_KEY: '',
      CADRE_SECRET_KEY_FILE: '',
      CADRE_PROVIDER_X_API_KEY: '',
    })
    assert.deepEqual([config.port, config.secret_key, config.providers], [8080, undefined, []])
  })

  it('all errors of the configuration are reported together, with the allowed values', () => {
    const error = faultsOf({
      PORT: '65536',
      CADRE_SIGNUP: 'yes',
      CADRE_RATE_LIMITS_SCALE: '0',
      CADRE_TRUSTED_PROXIES: '::1,10.0.0.0/33',
    })
    assert.deepEqual(error.faults, [
      { name: 'PORT', problem: '"65536" is not allowed', allowed: 'a whole number from 0 to 65535' },
      {
        name: 'CADRE_TRUSTED_PROXIES',
        problem: '"10.0.0.0/33" is not allowed',
        allowed: 'a comma-separated list of: an address or network, such as 10.1.2.3 or 10.0.0.0/8',
      },
      { name: 'CADRE_SIGNUP', problem: '"yes" is not allowed', allowed: 'invite, open' },
      { name: 'CADRE_RATE_LIMITS_SCALE', problem: '"0" is not allowed', allowed: 'a number above 0, such as 2 or 0.5' },
    ])
    assert.match(
      error.message,
      /^The configuration has 4 errors:\n {2}PORT: "65536" is not allowed\. Allowed: a whole number/,
    )
    assert.equal(error.message.split('\n').length, 5)
  })

  it('an error of the configuration never shows a secret or a password inside a URL', () => {
    const { message } = faultsOf({
      DATABASE_URL: 'mysql://u:canary@h/d',
      CADRE_SECRET_KEY: 'canary',
      CADRE_ADMIN_PASSWORD: 'canary',
      CADRE_ADMIN_API_KEY: 'canary',
      CADRE_OAUTH_CLIENT_SECRET: 'canary',
      OPENAI_API_KEY: 'canary canary',
      OPENAI_BASE_URL: 'https://user:canary@h/v1',
      CADRE_PROVIDER_X_API_KEY: 'canary canary',
      CADRE_SECRET_KEY_FILE: file('short', 'canary'),
    })
    assert.doesNotMatch(message, /canary/)
    assert.equal(message.split('\n').length, 9)
  })

  it('a secret may come from a file, without the line break at its end', () => {
    const secret = 'a secret of thirty-two characters'
    assert.equal(readConfig({ CADRE_SECRET_KEY_FILE: file('key', `${secret}\n`) }).secret_key, secret)
    assert.deepEqual(
      readConfig({ CADRE_PROVIDER_X_BASE_URL: 'http://x', CADRE_PROVIDER_X_API_KEY_FILE: file('x', 'k') }).providers,
      [{ name: 'x', base_url: 'http://x', api_key: 'k' }],
    )
  })

  it('a secret that is set twice, and a file that is missing or empty, are errors', () => {
    const { faults } = faultsOf({
      CADRE_SECRET_KEY: 'x'.repeat(32),
      CADRE_SECRET_KEY_FILE: '/anything',
      OPENAI_API_KEY_FILE: join(folder, 'missing'),
      ANTHROPIC_API_KEY_FILE: file('empty', '\n'),
    })
    assert.deepEqual(
      faults.map(({ name }) => name),
      ['CADRE_SECRET_KEY', 'OPENAI_API_KEY_FILE', 'ANTHROPIC_API_KEY_FILE'],
    )
    assert.match(faults[1]?.problem ?? '', /cannot be read \(ENOENT\)/)
    assert.match(faults[2]?.problem ?? '', /is empty/)
  })

  it('a well-known provider with a key needs no address', () => {
    assert.deepEqual(readConfig({ CADRE_PROVIDER_GEMINI_API_KEY: 'k' }).providers, [
      { name: 'gemini', base_url: 'https://generativelanguage.googleapis.com/v1beta/openai', api_key: 'k' },
    ])
    const elsewhere = { CADRE_PROVIDER_GEMINI_BASE_URL: 'http://gateway/v1', CADRE_PROVIDER_GEMINI_API_KEY: 'k' }
    assert.equal(readConfig(elsewhere).providers[0]?.base_url, 'http://gateway/v1')
  })

  it('variables of the command line and the SDKs cause no warning', () => {
    assert.deepEqual(readConfig({ CADRE_API_KEY: 'cadre_x', CADRE_PROJECT: '1', CADRE_PROFILE: 'a' }).warnings, [])
  })

  it('unknown variables with the prefix CADRE_ cause a warning, and all others are ignored', () => {
    const { warnings } = readConfig({
      CADRE_SECRT_KEY: 'x',
      CADRE_DATA_DIR_FILE: '/x',
      CADRE_PROVIDER_x_BASE_URL: 'http://x',
      PATH: '/bin',
    })
    assert.deepEqual(
      warnings.map((text) => text.split(' ')[0]),
      ['CADRE_DATA_DIR_FILE', 'CADRE_PROVIDER_x_BASE_URL', 'CADRE_SECRT_KEY'],
    )
  })

  it('every named base URL makes a provider', () => {
    const config = readConfig({
      CADRE_PROVIDER_OLLAMA_BASE_URL: 'http://127.0.0.1:11434/v1',
      CADRE_PROVIDER_MY_GROQ_BASE_URL: 'https://api.groq.com/openai/v1',
      CADRE_PROVIDER_MY_GROQ_API_KEY: 'gsk_1',
    })
    assert.deepEqual(config.providers, [
      { name: 'my-groq', base_url: 'https://api.groq.com/openai/v1', api_key: 'gsk_1' },
      { name: 'ollama', base_url: 'http://127.0.0.1:11434/v1' },
    ])
  })

  it('the protocols of providers and the limits of models can be configured', () => {
    const config = readConfig({
      OPENAI_PROTOCOL: 'chat',
      CADRE_PROVIDER_X_BASE_URL: 'http://x',
      CADRE_PROVIDER_X_PROTOCOL: 'responses',
      CADRE_MODEL_LIMITS: '{"x/y": {"context": 200000, "output": 64000, "reasons": true}, "x/z": {}}',
    })
    assert.equal(config.openai_protocol, 'chat')
    assert.deepEqual(config.providers, [{ name: 'x', base_url: 'http://x', protocol: 'responses' }])
    assert.deepEqual(config.model_limits.get('x/y'), { context: 200_000, output: 64_000, reasons: true })
    for (const table of [
      '[]',
      '{"x": {}}',
      '{"x/y": {"context": 0}}',
      '{"x/y": {"window": 5}}',
      '{"x/y": {"reasons": 1}}',
      'none',
    ])
      assert.equal(faultsOf({ CADRE_MODEL_LIMITS: table }).faults.length, 1, table)
    assert.equal(faultsOf({ OPENAI_PROTOCOL: 'messages' }).faults.length, 1)
    assert.equal(
      faultsOf({ CADRE_PROVIDER_X_PROTOCOL: 'chat' }).faults[0]?.problem,
      'it is unset, but the protocol is set',
    )
  })

  it('a provider with a key and no address, and one with a built-in name, are errors', () => {
    const { faults } = faultsOf({ CADRE_PROVIDER_X_API_KEY: 'k', CADRE_PROVIDER_OPENAI_BASE_URL: 'http://x' })
    assert.deepEqual(
      faults.map(({ name, problem }) => [name, problem]),
      [
        ['CADRE_PROVIDER_OPENAI_BASE_URL', '"openai" is built in'],
        ['CADRE_PROVIDER_X_BASE_URL', 'it is unset, but the key is set'],
      ],
    )
  })

  it('headers and sample ratio of traces have the formats of OpenTelemetry', () => {
    const config = readConfig({
      OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Bearer%20a%3D%3D, x-team = eu ',
      OTEL_TRACES_SAMPLER_ARG: '.25',
    })
    assert.deepEqual(config.otlp_headers, { Authorization: 'Bearer a==', 'x-team': 'eu' })
    assert.equal(config.otel_sample_ratio, 0.25)
    for (const ratio of ['1.5', '-1', 'half', '2', '.'])
      assert.equal(faultsOf({ OTEL_TRACES_SAMPLER_ARG: ratio }).faults.length, 1, ratio)
    for (const headers of ['Authorization', 'a b=c', 'x=%', 'x=%0a', '=y', 'x=1,']) {
      const { faults } = faultsOf({ OTEL_EXPORTER_OTLP_HEADERS: headers })
      assert.deepEqual([faults.length, faults[0]?.problem], [1, 'the value is not allowed'], headers)
    }
  })

  it('a redirect URI must be https, or http on loopback', () => {
    for (const uri of [
      'https://app.example.com/cb?x=1',
      'http://127.0.0.1:3000/cb',
      'http://[::1]/cb',
      'http://localhost/cb',
    ]) {
      assert.equal(readConfig({ CADRE_OAUTH_REDIRECT_URI: uri }).oauth_redirect_uri, uri)
    }
    for (const uri of [
      'http://app.example.com/cb',
      'http://127.example.com/cb',
      'https://a.example/#',
      'https://*.a.example/',
      'https://u@a.example/',
      'app:/cb',
    ]) {
      assert.equal(faultsOf({ CADRE_OAUTH_REDIRECT_URI: uri }).faults.length, 1, uri)
    }
  })

  it('the public URL is derived from host and port unless it is configured', () => {
    assert.equal(publicUrl({ host: '127.0.0.1', public_url: undefined }, 9000), 'http://127.0.0.1:9000')
    assert.equal(publicUrl({ host: '::1', public_url: undefined }, 9000), 'http://[::1]:9000')
    assert.equal(publicUrl({ host: '0.0.0.0', public_url: undefined }, 9000), 'http://localhost:9000')
    assert.equal(publicUrl({ host: '::', public_url: 'https://a.example' }, 9000), 'https://a.example')
  })

  it('the limits of a caller in README are those of a service without settings', () => {
    const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8')
    const [, ...named] =
      /may send ([\d,]+) general requests an hour, create ([\d,]+) agents and ([\d,]+) tasks a minute, and use ([\d,]+) tokens/.exec(
        readme,
      ) ?? []
    assert.deepEqual(
      named.map((figure) => Number(figure.replaceAll(',', ''))),
      [
        buckets.general.hour,
        buckets['agents.create'].minute,
        buckets['tasks.create'].minute,
        readConfig({}).tokens_per_hour,
      ],
    )
  })

  it('.env.example has every setting with its default, and no value of a secret', () => {
    const text = envExample()
    assert.equal(readFileSync(new URL('../../../.env.example', import.meta.url), 'utf8'), text, 'run `npm run gen`')
    const named = [...text.matchAll(/^#([A-Z_]+)=(.+)$/gm)].map(([, name, value]) => [name, value])
    assert.equal(named.length > 15, true)
    assert.deepEqual(readConfig(Object.fromEntries(named)).warnings, [])
  })
})
