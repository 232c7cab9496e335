// `npm pack` runs this when it has packed (`postpack`): it puts the manifest of the repository back. While the one of the package is
// there, the imports of the repository's scripts do not resolve, so it has none.
import { existsSync, renameSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const kept = fileURLToPath(new URL('../../dist/package.source.json', import.meta.url))
if (existsSync(kept)) renameSync(kept, fileURLToPath(new URL('../../package.json', import.meta.url)))
