#!/usr/bin/env node
// The command `cadre`, of a checkout and of the installed package. Plain JavaScript that any Node since 20 understands: on
// one that is new enough for the service, the commands run in this process, otherwise in the Node that npm installed as a
// package. Does not need install scripts.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const self = fileURLToPath(import.meta.url)
const root = dirname(self)
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const isNewEnough = major > 24 || (major === 24 && minor >= 7)
/** Given as the first word to a copy of this script by the one that started it. */
const underLauncher = '--under-launcher'

/** The package has the code compiled: Node runs no TypeScript below `node_modules`. */
const isCheckout = existsSync(join(root, 'server/src'))
const code = isCheckout
  ? { cli: 'cli/src/main.ts', commands: 'server/src/commands/commands.ts', run: 'server/src/commands/run-command.ts' }
  : { cli: 'dist/program/cli.js', commands: 'dist/program/commands.js', run: 'dist/program/run-command.js' }

if (isCheckout && !existsSync(join(root, 'node_modules'))) {
  fail('The packages of Cadre are not installed. Run `npm ci` first.')
} else if (isNewEnough) {
  await runHere()
} else {
  const ownNode = findOwnNode()
  if (ownNode !== undefined && process.argv[2] !== underLauncher) runThere(ownNode)
  else
    fail(
      `Cadre needs Node.js 24.7 or later, and this is ${process.version}. Install Node.js 24 from https://nodejs.org, or run ${
        isCheckout ? '`npm ci`' : '`npm install`'
      } with optional packages.`,
    )
}

async function runHere() {
  if (process.argv[2] === underLauncher) {
    process.argv.splice(2, 1)
    stopWithLauncher()
  } else stopWithNpm()
  // Where npm ran no install script, the first start does what it would have done.
  if (!isCheckout && process.argv[2] === 'serve') await load('tools/package/after-install.mjs')
  // Compiled code is kept, which halves the time to load; where the folder cannot be written to, it is not.
  module.enableCompileCache(join(root, isCheckout ? 'node_modules/.cache/cadre' : '.cache'))
  const [{ main }, { serverCommands }] = await Promise.all([load(code.cli), load(code.commands)])
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  await main({
    version: manifest.version,
    server: {
      commands: serverCommands,
      run: async (...call) => (await load(code.run)).runServerCommand(...call),
    },
  })
}

/** @param {string} file */
function load(file) {
  return import(pathToFileURL(join(root, file)).href)
}

/** The Node that npm installed as a package, beside this one's packages or below them. */
function findOwnNode() {
  const isWindows = process.platform === 'win32'
  const name = `node-${isWindows ? 'win' : process.platform}-${process.arch}`
  try {
    const manifest = createRequire(self).resolve(`${name}/package.json`)
    const program = join(dirname(manifest), 'bin', isWindows ? 'node.exe' : 'node')
    return existsSync(program) ? program : undefined
  } catch {
    return undefined
  }
}

/** A launcher that was killed could not tell us, but the channel to it ends. */
function stopWithLauncher() {
  if (!process.channel) return
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.channel.unref()
}

/**
 * A signal to `npm start` ends npm and its shell, but not what the shell runs: the service would go on, unseen. Its
 * parent changes when the shell is gone.
 */
function stopWithNpm() {
  if (process.env.npm_lifecycle_event === undefined) return
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    process.kill(process.pid, 'SIGTERM')
  }, 250)
  watch.unref()
}

/** @param {string} ownNode */
function runThere(ownNode) {
  stopWithNpm()
  const args = [self, underLauncher, ...process.argv.slice(2)]
  const child = spawn(ownNode, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2']) {
    process.on(signal, () => {
      // What is typed in a terminal reaches the whole group of processes, so the service has it already.
      const isTyped = process.stdin.isTTY && (signal === 'SIGINT' || signal === 'SIGQUIT')
      if (!isTyped) child.kill(signal)
    })
  }
  child.on('error', (error) => fail(`${ownNode} cannot be started: ${error.message}`))
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

/** @param {string} message */
function fail(message) {
  console.error(message)
  process.exitCode = 1
}
