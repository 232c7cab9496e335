import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, matchesGlob } from 'node:path'
import { parseEnv } from 'node:util'
import { describe, it } from 'node:test'
import { Ajv } from 'ajv'
import { parse, parseAllDocuments } from 'yaml'
import { knownAddresses } from '../../contract/src/models/known-addresses.ts'
import { type NativeProvider, nativeProviders } from '../../contract/src/models/native-providers.ts'
import { inspectConfig } from '../../server/src/config/config.ts'
import { imageConfig } from '../../tools/release/image.ts'
import { renderTemplate } from './helm-template.ts'

const root = new URL('../..', import.meta.url).pathname
const deploy = join(root, 'deploy')
const read = (path: string): string => readFileSync(join(deploy, path), 'utf8')
const dockerfile = read('Dockerfile')
const secrets = { DATABASE_URL: 'postgres://cadre:secret@postgres/cadre', CADRE_SECRET_KEY: 'x'.repeat(44) }

/** What is wrong with settings that something is deployed with. */
function faultsOf(env: Record<string, string>): unknown[] {
  const { faults, warnings } = inspectConfig(env)
  return [...faults, ...warnings]
}

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

describe('the image', () => {
  const instructions = dockerfile.replaceAll(/^#.*\n|\\\n\s*/gm, '').split('\n')
  const final = instructions.slice(instructions.findLastIndex((line) => line.startsWith('FROM ')))
  const health = JSON.parse(/CMD (\[.+\])$/.exec(final.find((line) => line.startsWith('HEALTHCHECK'))!)![1]!)
  const env = Object.fromEntries(
    final
      .filter((line) => line.startsWith('ENV '))
      .flatMap((line) =>
        line
          .slice(4)
          .split(' ')
          .map((pair) => pair.split('=')),
      ),
  )

  it('the image runs as a user without rights, with settings that there are, and says what is asked of it', () => {
    assert.match(
      final.find((line) => line.startsWith('USER '))!,
      /^USER [1-9]\d*:[1-9]\d*$/,
    )
    assert.deepEqual(faultsOf({ ...env, ...secrets }), [])
    assert.deepEqual([env.HOST, env.CADRE_DATA_DIR], ['0.0.0.0', '/data'])
    for (const word of ['VOLUME /data', 'STOPSIGNAL SIGTERM', 'CMD ["serve"]']) assert.ok(final.includes(word), word)
    const entry = JSON.parse(final.find((line) => line.startsWith('ENTRYPOINT '))!.slice('ENTRYPOINT '.length))
    assert.deepEqual(entry, imageConfig.Entrypoint)
    assert.deepEqual(
      imageConfig.Env.filter((pair) => !pair.startsWith('PATH=')).map((pair) => pair.split('=')),
      Object.entries(env),
      'the image of a release has the same settings',
    )
    assert.match(health.at(-1), /\/readyz/)
    const sent = read('Dockerfile.dockerignore')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
    const [all, pattern = '', ...rest] = sent
    assert.deepEqual([all, rest, pattern[0]], ['*', [], '!'])
    // A release has the packages of the command line and the SDK beside it.
    for (const [name, is] of [
      [`cadre-${version}.tgz`, true],
      [`cadre-cli-${version}.tgz`, false],
      [`cadre-sdk-${version}.tgz`, false],
    ] as const)
      assert.equal(matchesGlob(name, pattern.slice(1)), is, name)
    assert.ok(instructions.includes(`COPY ${pattern.slice(1)} /tmp/`))
  })
})

describe('the composition', () => {
  const compose = parse(read('compose.yaml'), { merge: true })
  const { postgres, ...ours } = compose.services as Record<string, any>

  it('the composition has a database, a migration, and processes of both roles, each without rights on a read-only root', () => {
    assert.deepEqual(Object.keys(ours).toSorted(), ['api', 'migrate', 'worker'])
    for (const [name, service] of Object.entries(ours)) {
      assert.equal(service.read_only, true, name)
      assert.deepEqual([service.cap_drop, service.security_opt], [['ALL'], ['no-new-privileges:true']], name)
      const env = Object.fromEntries(
        // One without a value is passed on, where the caller has it.
        Object.entries<string | null>(service.environment).flatMap(([key, value]) =>
          value === null ? [] : [[key, value.replace(/\$\{\w+:-([^}]+)\}/, '$1')]],
        ),
      )
      assert.deepEqual(faultsOf({ ...env, ...secrets }), [], name)
      for (const needed of Object.keys(service.depends_on)) assert.ok(compose.services[needed], needed)
    }
    assert.deepEqual(
      [ours.api.command, ours.worker.command, ours.migrate.command],
      [['serve', '--role', 'api'], ['serve', '--role', 'worker'], ['migrate']],
    )
    assert.ok(postgres.healthcheck && Object.hasOwn(compose.volumes, 'postgres'))
  })

  it('the composition passes on the keys of every model provider that needs no address, and names no setting that is not there', () => {
    const passed = Object.entries(ours.worker.environment).flatMap(([name, value]) => (value === null ? [name] : []))
    const native = Object.entries<NativeProvider>(nativeProviders).flatMap(([name, { protocols }]) =>
      ['API_KEY', 'BASE_URL', ...(protocols.length > 1 ? ['PROTOCOL'] : [])].map(
        (end) => `${name.toUpperCase()}_${end}`,
      ),
    )
    const known_keys = Object.keys(knownAddresses).map((name) => `CADRE_PROVIDER_${name.toUpperCase()}_API_KEY`)
    for (const name of [...native, ...known_keys]) assert.ok(passed.includes(name), name)
    const known = readFileSync(join(root, '.env.example'), 'utf8')
    for (const name of passed) {
      const setting = name.replace(/^CADRE_PROVIDER_[A-Z]+_/, 'CADRE_PROVIDER_<NAME>_')
      assert.match(known, new RegExp(`^#?\\s*${setting}=`, 'm'), name)
    }
  })

  it('the composition refuses to start without its secrets, and gives none away', () => {
    for (const name of ['POSTGRES_PASSWORD', 'CADRE_SECRET_KEY'])
      assert.match(read('compose.yaml'), new RegExp(`\\$\\{${name}:\\?`))
    assert.ok(postgres.ports === undefined, 'the database is for the network of the composition alone')
  })
})

describe('the chart', () => {
  const values = parse(read('helm/cadre/values.yaml')) as Record<string, any>
  const chart = parse(read('helm/cadre/Chart.yaml'))
  const templates = readdirSync(join(deploy, 'helm/cadre/templates'))
  const resources = templates.flatMap((name) => {
    const text = renderTemplate(read(`helm/cadre/templates/${name}`), {
      Values: { ...values, settings: { CADRE_LOG_LEVEL: 'info', CADRE_PUBLIC_URL: 'https://cadre.example.com' } },
      Release: { Name: 'ours' },
      Chart: { AppVersion: String(chart.appVersion) },
    })
    return parseAllDocuments(text).map((document) => {
      assert.deepEqual(document.errors, [], name)
      return document.toJS()
    })
  })
  const ofKind = (kind: string): any[] => resources.filter((one) => one.kind === kind)

  it('the chart has the version of the package, and values that its schema allows and nothing else', () => {
    assert.equal(String(chart.appVersion), version)
    const validate = new Ajv().compile(JSON.parse(read('helm/cadre/values.schema.json')))
    assert.ok(validate(values), JSON.stringify(validate.errors))
    for (const wrong of [{ drainSeconds: -1 }, { replicas: 2 }, { settings: { lower: 'x' } }])
      assert.ok(!validate({ ...values, ...wrong }), JSON.stringify(wrong))
  })

  it('the chart runs every process without rights on a read-only root, with probes and time to end', () => {
    assert.deepEqual(
      new Set(ofKind('Deployment').map(({ metadata }) => metadata.name)),
      new Set(['ours-api', 'ours-worker']),
    )
    for (const { metadata, spec } of [...ofKind('Deployment'), ...ofKind('Job')]) {
      const pod = spec.template.spec
      const [container] = pod.containers
      assert.equal(pod.securityContext.runAsNonRoot, true, metadata.name)
      assert.deepEqual(container.securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      const env = Object.fromEntries((container.env ?? []).map(({ name, value }: any) => [name, value]))
      assert.deepEqual(faultsOf({ ...env, ...secrets }), [], metadata.name)
      const mounted = (container.volumeMounts ?? []).map(({ name }: any) => name)
      assert.deepEqual(
        mounted,
        (pod.volumes ?? []).map(({ name }: any) => name),
      )
    }
    for (const { spec } of ofKind('Deployment')) {
      const [container] = spec.template.spec.containers
      const port = container.ports.find(({ name }: any) => name === 'http')
      for (const [probe, path] of [
        ['startupProbe', '/livez'],
        ['livenessProbe', '/livez'],
        ['readinessProbe', '/readyz'],
      ] as const)
        assert.deepEqual(container[probe].httpGet, { path, port: port.name })
      assert.ok(spec.template.spec.terminationGracePeriodSeconds >= values.drainSeconds + 35)
      assert.deepEqual(spec.strategy.rollingUpdate, { maxUnavailable: 0, maxSurge: 1 })
      assert.ok(container.resources.requests.memory)
      for (const [key, value] of Object.entries(spec.selector.matchLabels))
        assert.equal(spec.template.metadata.labels[key], value)
    }
  })

  it('the chart sends requests to processes that have the API alone', () => {
    const [service] = ofKind('Service')
    const chosen = ofKind('Deployment').filter(({ spec }) =>
      Object.entries(service.spec.selector).every(([key, value]) => spec.template.metadata.labels[key] === value),
    )
    assert.deepEqual(
      chosen.map(({ spec }) => spec.template.spec.containers[0].args),
      [['serve', '--role', 'api']],
    )
    assert.equal(service.spec.ports[0].targetPort, 'http')
  })
})

describe('the unit of systemd', () => {
  it('the unit of systemd is understood by systemd', async (t) => {
    if (spawnSync('systemd-analyze', ['--version']).error) return t.skip('systemd-analyze is not installed')
    const folder = await mkdtemp(join(tmpdir(), 'cadre-unit-'))
    try {
      const unit = join(folder, 'cadre.service')
      await writeFile(unit, read('systemd/cadre.service'))
      const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' })
      assert.deepEqual([status, stderr], [0, ''])
      await writeFile(unit, `${read('systemd/cadre.service')}Wanted=by\n`)
      assert.notEqual(spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' }).stderr, '')
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it('the unit of systemd has settings that there are, and time to end', () => {
    const env = parseEnv(
      read('systemd/cadre.env')
        .replaceAll(/^#(?=[A-Z_]+=)/gm, '')
        .replace('CADRE_SECRET_KEY=', `$&${secrets.CADRE_SECRET_KEY}`),
    )
    assert.deepEqual(faultsOf(env as Record<string, string>), [])
    assert.ok(Object.keys(env).length >= 6)
    const unit = read('systemd/cadre.service')
    assert.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]) >= 35)
    assert.match(unit, /^KillMode=mixed$/m)
    assert.match(unit, /^DynamicUser=yes$/m)
  })

  it('the unit of systemd starts a command that there is', async () => {
    const argv = /^ExecStart=\/usr\/bin\/env node \/opt\/cadre\/node_modules\/cadre\/cadre\.mjs (.+)$/m
      .exec(read('systemd/cadre.service'))![1]!
      .split(' ')
    const child = spawn(process.execPath, ['cadre.mjs', ...argv, '--help'], { cwd: root, stdio: 'ignore' })
    assert.deepEqual(await once(child, 'exit'), [0, null])
  })
})
