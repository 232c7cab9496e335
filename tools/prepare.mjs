// `npm ci` runs this (`prepare`). It makes what a first `npm start` would otherwise make while a user waits. Plain JavaScript that any
// Node since 20 understands. It never fails an installation: the start makes what is not there.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildConsoleIfStale } from './console-build.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
// `npm pack` runs this too, and makes what it packs itself. An image copies the packages before it has the sources.
if (process.env.npm_command !== 'pack' && existsSync(join(root, 'server/src'))) {
  await Promise.all([run('make-cluster.ts'), run('compile.ts'), buildConsoleIfStale()])
}

/** @param {string} script */
function run(script) {
  const args = [join(root, 'tools/run.mjs'), join(root, 'tools', script)]
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
  return new Promise((resolve) => {
    child.on('error', resolve)
    child.on('exit', resolve)
  })
}
