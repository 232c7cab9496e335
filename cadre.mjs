#!/usr/bin/env node
// The command `cadre`. Plain JavaScript that any Node since 20 understands: on one that can run the TypeScript of the
// commands as it is, they run in this process, otherwise in the Node that npm installed as a package. Does not need
// install scripts.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import module from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(fileURLToPath(import.meta.url))
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const isNewEnough = major > 24 || (major === 24 && minor >= 7)
/** Given as the first word to a copy of this script by the one that started it. */
const underLauncher = '--under-launcher'

const ownNode =
  process.platform === 'win32'
    ? join(root, `node_modules/node-win-${process.arch}/bin/node.exe`)
    : join(root, `node_modules/node-${process.platform}-${process.arch}/bin/node`)

if (!existsSync(join(root, 'node_modules'))) {
  fail('The packages of Cadre are not installed. Run `npm ci` first.')
} else if (isNewEnough) {
  await runHere()
} else if (existsSync(ownNode) && process.argv[2] !== underLauncher) {
  runThere()
} else {
  fail(
    `Cadre needs Node.js 24.7 or later, and this is ${process.version}. Install Node.js 24 from https://nodejs.org, or run \`npm ci\` with optional packages.`,
  )
}

async function runHere() {
  if (process.argv[2] === underLauncher) {
    process.argv.splice(2, 1)
    stopWithLauncher()
  } else stopWithNpm()
  // Compiled code is kept, which halves the time to load; where the folder cannot be written to, it is not.
  module.enableCompileCache(join(root, 'node_modules/.cache/cadre'))
  const [{ main }, { serverCommands }] = await Promise.all([
    import('./cli/src/main.ts'),
    import('./server/src/commands/commands.ts'),
  ])
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  await main({
    version: manifest.version,
    server: {
      commands: serverCommands,
      run: async (...call) => (await import('./server/src/commands/run-command.ts')).runServerCommand(...call),
    },
  })
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

function runThere() {
  stopWithNpm()
  const args = [fileURLToPath(import.meta.url), underLauncher, ...process.argv.slice(2)]
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
