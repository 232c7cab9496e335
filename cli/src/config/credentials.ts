import { join } from 'node:path'
import { locked } from './lock.ts'
import { type Environment, readJson, userFolder, writePrivately } from './config.ts'

/** What a profile is logged in with; good only for the service that it was given for. */
export interface Login {
  base_url: string
  api_key?: string
  access_token?: string
  refresh_token?: string
  client_id?: string
  /** Milliseconds of the epoch. */
  expires_at?: number
}

/** Where credentials are kept: a file that only its owner may read. */
export function credentialsPath(env: Environment): string {
  return join(userFolder(env), 'credentials.json')
}

/** The login of a profile at a service; undefined where there is none, or it is for another service. */
export function readLogin(env: Environment, profile: string, base_url: string): Login | undefined {
  const login = readJson(credentialsPath(env))?.[profile] as Login | undefined
  return login?.base_url === base_url ? login : undefined
}

/** The lock of that file: held to read it and change it. */
export function credentialsLock(env: Environment): string {
  return `${credentialsPath(env)}.lock`
}

/** Keeps or removes the login of a profile. */
export function keepLogin(env: Environment, profile: string, login: Login | undefined): Promise<void> {
  return locked(credentialsLock(env), async () => writeLogin(env, profile, login))
}

/** The same, for the holder of the lock. */
export function writeLogin(env: Environment, profile: string, login: Login | undefined): void {
  const { [profile]: _, ...others } = readJson(credentialsPath(env)) ?? {}
  writePrivately(credentialsPath(env), login === undefined ? others : { ...others, [profile]: login })
}
