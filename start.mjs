// Starts the service (`npm start`): the same as the command `cadre serve`, and the console is built where it is not there
// or older than what it is made of. The service does not wait for that.
import { buildConsoleIfStale } from './tools/console-build.mjs'

if (process.env.CADRE_CONSOLE !== 'off') void buildConsoleIfStale().catch(() => {})
process.argv.splice(2, 0, 'serve')
await import('./cadre.mjs')
