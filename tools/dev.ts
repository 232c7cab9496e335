import { spawn } from 'node:child_process'
import { join } from 'node:path'

/** Starts the service as `npm start` does, and again whenever a file of it changes. */
const folders = ['contract/src', 'server/src', 'server/migrations']
const child = spawn(
  process.execPath,
  [...folders.map((folder) => `--watch-path=${folder}`), '--watch-preserve-output', 'start.mjs'],
  { cwd: join(import.meta.dirname, '..'), stdio: 'inherit' },
)
// Ctrl-C reaches the service as well, which stops; this process waits for it.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => child.kill('SIGTERM'))
child.on('exit', (code) => (process.exitCode = code ?? 1))
