// Starts the service (`npm start`): the same as the command `cadre serve`, and the console is built where it is not there
// or older than what it is made of. The service does not wait for that.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { buildConsoleIfStale, builtFolder } from './tools/console-build.mjs'

if (process.env.CADRE_CONSOLE !== 'off') {
  const wasThere = existsSync(join(builtFolder, 'index.html'))
  void buildConsoleIfStale()
    .then((isThere) => {
      if (isThere && !wasThere) console.log('The console is built; the service has it at /.')
    })
    .catch(() => {})
}
process.argv.splice(2, 0, 'serve')
await import('./cadre.mjs')
