import module from 'node:module'
import { join } from 'node:path'

/** `npm ci` runs this: the code of the service as Node keeps it compiled (`cadre.mjs`), so that a first start need not compile it. */
module.enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/cadre'))
for (const file of [
  'cli/src/main.ts',
  'server/src/commands/serve.ts',
  'server/src/service.ts',
  'server/src/welcome.ts',
])
  await import(join('..', file))
module.flushCompileCache()
