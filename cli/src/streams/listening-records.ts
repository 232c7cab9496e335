import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Cadre } from '#sdk/client.ts'
import { APIError, NotFoundError } from '#sdk/errors.ts'
import { type Environment, readJson, userFolder, writePrivately } from '../config/config.ts'
import { isAlive } from '../config/lock.ts'

/** A webhook that no credential of this user finds any more is forgotten after so long. */
const keptFor_ms = 7 * 24 * 3600 * 1000
/** So many of the webhooks that were left behind are removed at a time. */
const removedMax = 100

/** What a command that listens leaves behind where it is killed: enough to find its webhook again. */
interface ListeningRecord {
  pid: number
  host: string
  base_url: string
  /** Leads to this process alone, unless it is a public address. */
  url: string
  webhook_id: string | null
  began_at: string
}

/** The record of a command that listens, in a file of this user: from before its webhook is made until that is gone. */
export class OwnRecord {
  readonly #path: string
  readonly #record: ListeningRecord

  constructor(env: Environment, base_url: string, url: string) {
    this.#path = join(folderOf(env), `${randomUUID()}.json`)
    const began_at = new Date().toISOString()
    this.#record = { pid: process.pid, host: hostname(), base_url, url, webhook_id: null, began_at }
    writePrivately(this.#path, this.#record)
  }

  /** Notes which webhook was made. */
  made(webhook_id: string): void {
    writePrivately(this.#path, { ...this.#record, webhook_id })
  }

  remove(): void {
    rmSync(this.#path, { force: true })
  }
}

/**
 * Removes the webhooks that commands of this user on this machine have left at a service because they were killed; gives
 * their ids. Those of commands that run are left alone. What the service refuses stays for the next time.
 */
export async function removeLeftBehind(env: Environment, base_url: string, client: Cadre): Promise<string[]> {
  const removed: string[] = []
  for (const path of recordPaths(env).slice(0, removedMax)) {
    const record = recordOf(path)
    if (!record || record.base_url !== base_url || record.host !== hostname() || isAlive(record.pid)) continue
    try {
      const webhook_id = record.webhook_id ?? (await idOf(client, record.url))
      if (webhook_id !== undefined) {
        await client.webhooks.delete(webhook_id)
        removed.push(webhook_id)
      }
      rmSync(path, { force: true })
    } catch (error) {
      if (!(error instanceof APIError)) throw error
      // Not found may mean that it belongs to another organization of this user.
      const isOld = Date.now() - Date.parse(record.began_at) > keptFor_ms
      if (error instanceof NotFoundError && isOld) rmSync(path, { force: true })
    }
  }
  return removed
}

/** The webhooks of commands of this user that listen on this machine for events of a service. */
export function listeningHere(env: Environment, base_url: string): string[] {
  return recordPaths(env).flatMap((path) => {
    const record = recordOf(path)
    const isOurs = record?.base_url === base_url && record.host === hostname() && isAlive(record.pid)
    return isOurs && record.webhook_id !== null ? [record.webhook_id] : []
  })
}

/** The webhook of a loopback address, which one process listens on. Other addresses cannot be distinguished. */
async function idOf(client: Cadre, url: string): Promise<string | undefined> {
  if (!url.startsWith('http://127.0.0.1:')) return undefined
  for await (const webhook of client.webhooks.list({ search: url })) if (webhook.url === url) return webhook.id
  return undefined
}

function folderOf(env: Environment): string {
  return join(userFolder(env), 'listening')
}

function recordPaths(env: Environment): string[] {
  const folder = folderOf(env)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => join(folder, name))
}

/** Undefined where it is gone, or no record. */
function recordOf(path: string): ListeningRecord | undefined {
  try {
    return readJson(path) as ListeningRecord | undefined
  } catch {
    return undefined
  }
}
