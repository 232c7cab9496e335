import { chown, open, rename } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import type { Account } from './account.ts'

/** Names of files in the cluster's folder. */
const rulesName = 'pg_hba.conf'
const mapName = 'pg_ident.conf'
const head = '# Written by Cadre at every start.\n'

/** The server's settings for its rule files. They are set on its command line, so no file in the data folder overrides them. */
export function accessSettings(dir: string): { hba_file: string; ident_file: string } {
  return { hba_file: join(dir, rulesName), ident_file: join(dir, mapName) }
}

/**
 * Writes the rules for connections. Only the account of this process and root may connect, and only over the socket; the
 * kernel identifies them (`peer`). If this process is root, the account that PostgreSQL runs as may not connect. There is
 * no rule for replication.
 */
export async function writeAccessRules(dir: string, account: Account | undefined, name = accountName()): Promise<void> {
  // PostgreSQL cannot look up an account without a name, as in some containers. PostgreSQL then runs as that account too,
  // and no other account may enter the folder of the socket.
  const rule = name === undefined ? 'trust' : 'peer map=cadre'
  const names = [...new Set([name ?? [], 'root'].flat())]
  await write(join(dir, rulesName), `${head}local all all ${rule}\n`, account)
  await write(join(dir, mapName), `${head}${names.map((one) => `cadre "${one}" all\n`).join('')}`, account)
}

/** The name of this process's account; undefined if the system knows none. */
function accountName(): string | undefined {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}

async function write(path: string, text: string, account: Account | undefined): Promise<void> {
  const fresh = `${path}.new`
  const file = await open(fresh, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  if (account) await chown(fresh, account.uid, account.gid)
  await rename(fresh, path)
}
