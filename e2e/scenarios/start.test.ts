import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import { existsSync } from 'node:fs'

/** A checkout with the real `start.mjs` and `cadre.mjs`, and a service that prints who it is and how it was stopped. */
let root = ''
const children: ChildProcess[] = []
const ownNode = new URL(`../../node_modules/node-${process.platform}-${process.arch}/`, import.meta.url).pathname
const withoutOwnNode = { skip: existsSync(ownNode) ? false : 'npm installed no Node for this platform' }

const program = `export function main() {
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      console.log('told', name)
      process.exit(7)
    })
  }
  console.log('service', process.pid, process.version, ...process.argv.slice(2))
  setInterval(() => {}, 60_000)
}
`
/** Makes a Node say that it is an older one, which is all that `start.mjs` asks. */
const older = [
  '--import',
  `data:text/javascript,${encodeURIComponent(
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.0.0' } })`,
  )}`,
]

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'cadre-start-'))
  await mkdir(join(root, 'server', 'src'), { recursive: true })
  await mkdir(join(root, 'node_modules'))
  for (const name of ['start.mjs', 'cadre.mjs', 'tools/console-build.mjs', 'server/src/commands/commands.ts'])
    await cp(new URL(`../../${name}`, import.meta.url), join(root, name))
  await mkdir(join(root, 'cli', 'src'), { recursive: true })
  await writeFile(join(root, 'package.json'), '{ "type": "module" }')
  await writeFile(join(root, 'cli', 'src', 'main.ts'), program)
})
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')))
after(() => rm(root, { recursive: true, force: true }))

function start(...nodeArgs: string[]): {
  child: ChildProcess
  said: (pattern: RegExp) => Promise<RegExpExecArray>
  ended: Promise<unknown[]>
} {
  const child = spawn(process.execPath, [...nodeArgs, 'start.mjs'], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data: Buffer) => {
      output += data.toString()
      child.emit('said')
    })
  }
  const said = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const found = pattern.exec(output)
      if (found) return found
      await once(child, 'said', { signal: AbortSignal.timeout(10_000) })
    }
  }
  return { child, said, ended: once(child, 'close') }
}

describe('npm start', () => {
  it('npm start runs the service in the same process on a Node that can', async () => {
    const { child, said, ended } = start()
    const [, pid, text] = await said(/^service (\d+) \S+ (.+)$/m)
    assert.deepEqual([Number(pid), text], [child.pid, 'serve'])
    child.kill('SIGTERM')
    assert.deepEqual(await ended, [7, null])
  })

  it(
    'npm start hands over to the Node that npm installed, with signals and the exit code',
    withoutOwnNode,
    async () => {
      await symlink(ownNode, join(root, 'node_modules', `node-${process.platform}-${process.arch}`))
      const { child, said, ended } = start(...older)
      const [, pid, version, text] = await said(/^service (\d+) v(\S+) (.+)$/m)
      assert.notEqual(Number(pid), child.pid)
      assert.equal(text, 'serve')
      assert.ok(Number(version?.split('.')[0]) >= 24)
      child.kill('SIGINT')
      await said(/told SIGINT/)
      assert.deepEqual(await ended, [7, null])
    },
  )

  it('npm start does not leave the service running when the launcher is killed', withoutOwnNode, async () => {
    const { child, said, ended } = start(...older)
    await said(/^service/m)
    child.kill('SIGKILL')
    await said(/told SIGTERM/)
    await ended
  })

  it('npm start says what to install where no Node is new enough', async () => {
    await rm(join(root, 'node_modules', `node-${process.platform}-${process.arch}`), { force: true })
    const { said, ended } = start(...older)
    await said(/^Cadre needs Node\.js 24\.7 or later, and this is v\S+\. Install .*$/m)
    assert.deepEqual(await ended, [1, null])
  })

  it('npm start says so where the packages are not installed', async () => {
    await rm(join(root, 'node_modules'), { recursive: true })
    const { said, ended } = start()
    await said(/^The packages of Cadre are not installed\. Run `npm ci` first\.$/m)
    assert.deepEqual(await ended, [1, null])
  })
})
