import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { UsageError } from '../failure.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Settings of the command line, with their variables and defaults. */
export const settings = {
  profile: { variable: 'CADRE_PROFILE', default: 'default', inProjectFile: true },
  // Not from a project's file: its author could redirect API keys to another host.
  base_url: { variable: 'CADRE_BASE_URL', default: 'http://127.0.0.1:8080', inProjectFile: false },
  project: { variable: 'CADRE_PROJECT', default: undefined, inProjectFile: true },
  oauth_client_id: { variable: 'CADRE_OAUTH_CLIENT_ID', default: undefined, inProjectFile: false },
} as const

export type SettingName = keyof typeof settings
export const settingNames = Object.keys(settings) as SettingName[]

/** A setting with its source. */
export interface Setting {
  value: string | undefined
  source: string
}

interface UserFile {
  profile?: string
  profiles?: Record<string, Record<string, string>>
}

/** The folder of a user's files: `$XDG_CONFIG_HOME/cadre`, else `~/.config/cadre`. */
export function userFolder(env: Environment): string {
  return join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'cadre')
}

/** Reads every setting: flags before environment, project file, profile of the user's file, defaults. */
export function readSettings(
  env: Environment,
  flags: Partial<Record<SettingName, string | undefined>>,
  folder: string,
): Record<SettingName, Setting> {
  const path = join(userFolder(env), 'config.json')
  const user = readUserFile(env)
  const project = projectFile(folder)
  const first = (name: SettingName, own: string | undefined, ownSource: string): Setting => {
    const { variable, inProjectFile } = settings[name]
    if (flags[name] !== undefined) return { value: flags[name], source: 'flag' }
    if (env[variable]) return { value: env[variable], source: variable }
    const shared = inProjectFile ? project?.members[name] : undefined
    if (typeof shared === 'string') return { value: shared, source: project!.path }
    if (own !== undefined) return { value: own, source: ownSource }
    return { value: settings[name].default, source: settings[name].default === undefined ? 'not set' : 'default' }
  }
  const profile = first('profile', user.profile, path)
  const members = user.profiles?.[profile.value!] ?? {}
  const of = (name: SettingName) => first(name, members[name], `${path} (${profile.value})`)
  return { profile, base_url: of('base_url'), project: of('project'), oauth_client_id: of('oauth_client_id') }
}

/** The user file; empty if it does not exist. */
export function readUserFile(env: Environment): UserFile {
  return readJson(join(userFolder(env), 'config.json')) ?? {}
}

/** Sets or removes members of a profile in the user's file. */
export function changeProfile(env: Environment, profile: string, change: Record<string, string | undefined>): void {
  const file = readUserFile(env)
  const members = { ...file.profiles?.[profile], ...change }
  const kept = Object.entries(members).filter((entry): entry is [string, string] => entry[1] !== undefined)
  writeUserFile(env, { ...file, profiles: { ...file.profiles, [profile]: Object.fromEntries(kept) } })
}

/** Replaces the user's file. */
export function writeUserFile(env: Environment, file: UserFile): void {
  writePrivately(join(userFolder(env), 'config.json'), file)
}

/** Writes a JSON file that only its owner can read, atomically. */
export function writePrivately(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const part = `${path}.${process.pid}`
  writeFileSync(part, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 })
  renameSync(part, path)
}

/** The object in a JSON file; undefined if the file does not exist. */
export function readJson(path: string): Record<string, unknown> | undefined {
  if (!existsSync(path)) return undefined
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
  throw new UsageError(`${path} is not a JSON object.`)
}

/** `.cadre.json` of a folder or of one above it. */
function projectFile(folder: string): { path: string; members: Record<string, unknown> } | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const path = join(at, '.cadre.json')
    const members = readJson(path)
    if (members) return { path, members }
    if (dirname(at) === at) return undefined
  }
}
