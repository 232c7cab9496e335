import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { describe, it } from 'node:test'
import { Ajv } from 'ajv'
import { parse, parseAllDocuments } from 'yaml'
import { inspectConfig } from '../../server/src/config/config.ts'
import { sender } from '../../server/test/harness.ts'
import { renderTemplate } from './helm-template.ts'
import { startProcess } from '../process.ts'

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

const { scripts, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const otherUser = 65_534
const isRoot = process.getuid?.() === 0

describe('the image', () => {
  const instructions = dockerfile.replaceAll(/^#.*\n|\\\n\s*/gm, '').split('\n')
  const final = instructions.slice(instructions.findLastIndex((line) => line.startsWith('FROM ')))
  const copies = final.filter((line) => line.startsWith('COPY ') && !line.includes('--from='))
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

  it('runs as a user without rights, with settings that there are, and says what is asked of it', () => {
    assert.match(
      final.find((line) => line.startsWith('USER '))!,
      /^USER [1-9]\d*:[1-9]\d*$/,
    )
    assert.deepEqual(faultsOf({ ...env, ...secrets }), [])
    assert.deepEqual([env.HOST, env.CADRE_DATA_DIR], ['0.0.0.0', '/data'])
    for (const word of ['VOLUME /data', 'STOPSIGNAL SIGTERM', 'ENTRYPOINT ["node", "cadre.mjs"]', 'CMD ["serve"]'])
      assert.ok(final.includes(word), word)
    const left_out = read('Dockerfile.dockerignore').split('\n')
    for (const name of ['.git', '.cadre', '.env', '**/node_modules']) assert.ok(left_out.includes(name), name)
    assert.ok(instructions.includes('RUN npm run build') && 'build' in scripts)
  })

  it('holds all that the service needs: installed and copied as it says, read-only, run without rights', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'cadre-image-'))
    const [app, data] = [join(folder, 'app'), join(folder, 'data')]
    try {
      chmodSync(folder, 0o755)
      mkdirSync(app)
      mkdirSync(data, { mode: 0o700 })
      for (const name of ['package.json', 'package-lock.json']) copyFileSync(join(root, name), join(app, name))
      const install = instructions.find((line) => line.startsWith('RUN npm ci '))!.slice(4)
      const installed = spawnSync('bash', ['-c', `${install} --offline`], { cwd: app, encoding: 'utf8' })
      if (installed.status !== 0 && /ENOTCACHED|cache mode is 'only-if-cached'/.test(installed.stderr))
        return t.skip('npm has not kept the packages, and tests ask no registry')
      assert.equal(installed.status, 0, installed.stderr)
      for (const line of copies) {
        const words = line.split(' ').slice(1)
        const to = words.pop()!
        for (const from of words)
          cpSync(join(root, from), to === './' ? join(app, from) : join(app, to), { recursive: true })
      }
      const node = join(folder, 'node')
      copyFileSync(process.execPath, node)
      chmodSync(node, 0o755)
      assert.equal(spawnSync('chmod', ['-R', 'a-w,a+rX', app]).status, 0)
      if (isRoot) chownSync(data, otherUser, otherUser)
      else t.diagnostic('not run as root: the service runs as the same user')

      const { PORT: _port, ...settings } = env
      const key = `cadre_${'1a'.repeat(16)}`
      const asOtherUser = `exec setpriv --reuid=${otherUser} --regid=${otherUser} --clear-groups "$@"`
      const shell = ['bash', '-c', isRoot ? asOtherUser : 'exec "$@"', 'bash'] as const
      const command: [string, ...string[]] = [...shell, 'env', '-C', app, node, 'cadre.mjs', 'serve']
      const service = await startProcess(
        {
          ...settings,
          HOST: '127.0.0.1',
          CADRE_DATA_DIR: data,
          CADRE_ADMIN_API_KEY: key,
          CADRE_METRICS_PORT: 'off',
          HOME: data,
        },
        { command },
      )
      const isHealthy = (): number | null =>
        spawnSync(node, health.slice(1), { env: { PORT: new URL(service.url).port } }).status
      try {
        assert.equal(isHealthy(), 0)
        const send = sender(service.url, key)
        const { body: project } = await send('POST', '/api/v1/projects', { body: { name: 'packed' } })
        const agents = `/api/v1/projects/${project.id}/agents`
        const { body: agent } = await send('POST', agents, { body: { name: 'echo' } })
        const { body: task } = await send('POST', `${agents}/${agent.id}/tasks?wait=60`, { body: { input: 'packed' } })
        assert.equal(task.output.content, 'packed')
      } finally {
        assert.deepEqual(await service.end(), { code: 0, signal: null })
      }
      assert.equal(isHealthy(), 1)
    } finally {
      spawnSync('chmod', ['-R', 'u+w', folder])
      await rm(folder, { recursive: true, force: true })
    }
  })
})

describe('the composition', () => {
  const compose = parse(read('compose.yaml'), { merge: true })
  const { postgres, ...ours } = compose.services as Record<string, any>

  it('has a database, a migration, and processes of both roles, each without rights on a read-only root', () => {
    assert.deepEqual(Object.keys(ours).toSorted(), ['api', 'migrate', 'worker'])
    for (const [name, service] of Object.entries(ours)) {
      assert.equal(service.read_only, true, name)
      assert.deepEqual([service.cap_drop, service.security_opt], [['ALL'], ['no-new-privileges:true']], name)
      const env = Object.fromEntries(
        Object.entries<string>(service.environment).map(([key, value]) => [
          key,
          value.replace(/\$\{\w+:-([^}]+)\}/, '$1'),
        ]),
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

  it('refuses to start without its secrets, and gives none away', () => {
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

  it('has the version of the package, and values that its schema allows and nothing else', () => {
    assert.equal(String(chart.appVersion), version)
    const validate = new Ajv().compile(JSON.parse(read('helm/cadre/values.schema.json')))
    assert.ok(validate(values), JSON.stringify(validate.errors))
    for (const wrong of [{ drainSeconds: -1 }, { replicas: 2 }, { settings: { lower: 'x' } }])
      assert.ok(!validate({ ...values, ...wrong }), JSON.stringify(wrong))
  })

  it('runs every process without rights on a read-only root, with probes and time to end', () => {
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

  it('sends requests to processes that have the API alone', () => {
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
  it('is understood by systemd', async (t) => {
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

  it('has settings that there are, and time to end', () => {
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

  it('starts a command that there is', async () => {
    const words = /^ExecStart=\/usr\/bin\/env node \/opt\/cadre\/cadre\.mjs (.+)$/m
      .exec(read('systemd/cadre.service'))![1]!
      .split(' ')
    const child = spawn(process.execPath, ['cadre.mjs', ...words, '--help'], { cwd: root, stdio: 'ignore' })
    assert.deepEqual(await once(child, 'exit'), [0, null])
  })
})
