import { join } from 'node:path'
import { locked } from './lock.ts'
import { type Environment, readJson, userFolder, writePrivately } from './config.ts'

/** The credential of a profile, which is only valid for its service. */
export interface Login {
  base_url: string
  api_key?: string
  access_token?: string
  refresh_token?: string
  client_id?: string
  /** Unix time in milliseconds. */
  expires_at?: number
}

/** The file of credentials, which only its owner can read. */
export function credentialsPath(env: Environment): string {
  return join(userFolder(env), 'credentials.json')
}

/** The login of a profile at a service; undefined without one, or if it is for another service. */
export function readLogin(env: Environment, profile: string, base_url: string): Login | undefined {
  const login = readJson(credentialsPath(env))?.[profile] as Login | undefined
  return login?.base_url === base_url ? login : undefined
}

/** The lock of that file, which is held to read and change it. */
export function credentialsLock(env: Environment): string {
  return `${credentialsPath(env)}.lock`
}

/** Stores or removes the login of a profile. */
export function keepLogin(env: Environment, profile: string, login: Login | undefined): Promise<void> {
  return locked(credentialsLock(env), async () => writeLogin(env, profile, login))
}

/** Stores or removes the login of a profile while the caller holds the lock. */
export function writeLogin(env: Environment, profile: string, login: Login | undefined): void {
  const { [profile]: _, ...others } = readJson(credentialsPath(env)) ?? {}
  writePrivately(credentialsPath(env), login === undefined ? others : { ...others, [profile]: login })
}
