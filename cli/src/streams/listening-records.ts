import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Cadre } from '#sdk/client.ts'
import { APIError, NotFoundError } from '#sdk/errors.ts'
import { type Environment, readJson, userFolder, writePrivately } from '../config/config.ts'
import { isAlive } from '../config/lock.ts'

/** The record of a webhook that cannot be found is deleted after this time. */
const keptFor_ms = 7 * 24 * 3600 * 1000
/** Maximum number of left-behind webhooks that a command removes. */
const removedMax = 100

/** Record of a listening command, to find its webhook after a kill. */
interface ListeningRecord {
  pid: number
  host: string
  base_url: string
  /** Belongs to this process alone, unless it is a public URL. */
  url: string
  webhook_id: string | null
  began_at: string
}

/** The record of this command, in a file of the user: from before its webhook is created until it is deleted. */
export class OwnRecord {
  readonly #path: string
  readonly #record: ListeningRecord

  constructor(env: Environment, base_url: string, url: string) {
    this.#path = join(folderOf(env), `${randomUUID()}.json`)
    const began_at = new Date().toISOString()
    this.#record = { pid: process.pid, host: hostname(), base_url, url, webhook_id: null, began_at }
    writePrivately(this.#path, this.#record)
  }

  /** Records the created webhook. */
  made(webhook_id: string): void {
    writePrivately(this.#path, { ...this.#record, webhook_id })
  }

  remove(): void {
    rmSync(this.#path, { force: true })
  }
}

/**
 * Deletes the webhooks of killed commands of this user on this machine; returns their ids. Webhooks of running commands are
 * kept. If the service refuses a deletion, the next command tries again.
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
      // A missing webhook may belong to another organization of this user.
      const isOld = Date.now() - Date.parse(record.began_at) > keptFor_ms
      if (error instanceof NotFoundError && isOld) rmSync(path, { force: true })
    }
  }
  return removed
}

/** The webhooks of running commands of this user on this machine, for one service. */
export function listeningHere(env: Environment, base_url: string): string[] {
  return recordPaths(env).flatMap((path) => {
    const record = recordOf(path)
    const isOurs = record?.base_url === base_url && record.host === hostname() && isAlive(record.pid)
    return isOurs && record.webhook_id !== null ? [record.webhook_id] : []
  })
}

/** The webhook with a loopback URL, which belongs to one process. Other URLs cannot be attributed. */
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

/** Reads a record; undefined if it does not exist or is invalid. */
function recordOf(path: string): ListeningRecord | undefined {
  try {
    return readJson(path) as ListeningRecord | undefined
  } catch {
    return undefined
  }
}
