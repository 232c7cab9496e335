import { chown, open, rename } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import type { Account } from './account.ts'

/** Names of the files below the cluster's folder. */
const rulesName = 'pg_hba.conf'
const mapName = 'pg_ident.conf'
const head = '# Written by Cadre at every start.\n'

/** Settings of the server that name the rules, which nothing in the data folder can override. */
export function accessSettings(dir: string): { hba_file: string; ident_file: string } {
  return { hba_file: join(dir, rulesName), ident_file: join(dir, mapName) }
}

/**
 * Writes who may connect: over the socket alone, the account that this process runs as, and root, which can become any account.
 * The kernel says which account a process is of (`peer`). The account that PostgreSQL runs as is none of them where this process
 * is root. There is no rule for replication.
 */
export async function writeAccessRules(dir: string, account: Account | undefined, name = accountName()): Promise<void> {
  // PostgreSQL cannot look up an account without a name, as containers have them. It is then this process's own, and the folder
  // of the socket lets no other in.
  const rule = name === undefined ? 'trust' : 'peer map=cadre'
  const names = [...new Set([name ?? [], 'root'].flat())]
  await write(join(dir, rulesName), `${head}local all all ${rule}\n`, account)
  await write(join(dir, mapName), `${head}${names.map((one) => `cadre "${one}" all\n`).join('')}`, account)
}

/** Undefined where the system knows no name for this process's account. */
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
