import { type Environment, readJson, readUserFile } from './config.ts'
import { credentialsPath } from './credentials.ts'

/** The profiles of a user: those with settings or a login, and the default one. */
export function profileNames(env: Environment): string[] {
  const { profiles = {} } = readUserFile(env)
  return [
    ...new Set(['default', ...Object.keys(profiles), ...Object.keys(readJson(credentialsPath(env)) ?? {})]),
  ].sort()
}
