import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './platform/root.ts'

const manifest: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** The version of this build in `package.json`. */
export const version: string =
  typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : '0.0.0'
