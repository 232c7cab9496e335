// The installed package runs this (`postinstall`), and so does a start of the service, because npm may refuse install scripts. It removes
// the C headers that the package of Node.js carries for building native modules, 67 MB that nothing here uses. Everything works
// without it. Plain JavaScript that any Node since 20 understands.
import { existsSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

try {
  const manifest = createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/package.json`)
  const headers = join(dirname(manifest), 'include')
  if (existsSync(join(headers, 'node/node_version.h'))) rmSync(headers, { recursive: true, force: true })
} catch {
  // Optional packages were left out, or the folder cannot be written to.
}
