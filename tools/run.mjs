// Runs one of the repository's scripts: `node tools/run.mjs tools/check.ts`. Plain JavaScript that any Node since 20
// understands: where this Node cannot run TypeScript as it is, the one that npm installed as a package does. Normally
// `node` in an npm script is that one already, but npm 10 loses the link to it.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const [script = '', ...args] = process.argv.slice(2)
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const system = process.platform === 'win32' ? 'win' : process.platform
const program = system === 'win' ? 'node.exe' : 'node'
const ownNode = fileURLToPath(new URL(`../node_modules/node-${system}-${process.arch}/bin/${program}`, import.meta.url))

/** Packing and releasing compile; other scripts run where these packages are left out too. */
const packages = fileURLToPath(new URL('../node_modules', import.meta.url))
const lacksPackages =
  /pack|release/.test(script) && ['typescript', 'rolldown'].some((name) => !existsSync(join(packages, name)))

if (lacksPackages) {
  console.error(
    'This needs the development packages of the repository. Run `npm ci` in it, without --omit=dev, and try again.',
  )
  process.exitCode = 1
} else if (major > 24 || (major === 24 && minor >= 7)) {
  process.argv.splice(1, 2, resolve(script))
  await import(pathToFileURL(resolve(script)).href)
} else if (existsSync(ownNode)) {
  const child = spawn(ownNode, [script, ...args], { stdio: 'inherit' })
  // Ctrl-C reaches the script as well, and this process waits for its end.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  child.on('exit', (code) => (process.exitCode = code ?? 1))
} else {
  console.error(`Node.js 24.7 or later is needed, and this is ${process.version}. Install it, or run \`npm ci\`.`)
  process.exitCode = 1
}
