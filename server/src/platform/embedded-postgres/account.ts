import { readFile, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { EmbeddedPostgresError, remedy } from './error.ts'

/**
 * The account that PostgreSQL runs as if the service is root, because PostgreSQL refuses to run as root: the owner of the
 * existing cluster, or the first that exists of `cadre`, `postgres` and `nobody`. `initdb` needs an account that the system
 * knows.
 */
export interface Account {
  uid: number
  gid: number
  name: string
}

const candidates = ['cadre', 'postgres', 'nobody']

/** The account to run PostgreSQL as; undefined for that of this process if it is not root. */
export async function chooseAccount(cluster_dir: string): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const cluster = await stat(cluster_dir).catch(() => undefined)
  if (cluster && cluster.uid !== 0) return { uid: cluster.uid, gid: cluster.gid, name: `uid ${cluster.uid}` }

  const known = (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n').map((line) => line.split(':'))
  for (const name of candidates) {
    const [, , uid, gid] = known.find(([found]) => found === name) ?? []
    if (Number(uid) > 0 && Number(gid) > 0) return { uid: Number(uid), gid: Number(gid), name }
  }
  throw new EmbeddedPostgresError(
    `PostgreSQL refuses to run as root, and none of the accounts ${candidates.join(', ')} exists. Run the service as an ordinary user. ${remedy}`,
  )
}

/** Arguments to spawn a program. */
export interface Launch {
  file: string
  args: string[]
  uid?: number
  gid?: number
}

/**
 * How to run `file` as `account`, which must be able to reach all of `paths`. If a parent folder is closed to it (a
 * checkout below `/root`), the process gets the weakest available capability that opens it. The service's database role
 * cannot use that: reading files from SQL needs a superuser.
 * @throws EmbeddedPostgresError if no capability is available
 */
export async function launchAs(
  account: Account | undefined,
  file: string,
  args: string[],
  paths: string[],
): Promise<Launch> {
  if (!account) return { file, args }
  const closed = (await Promise.all(paths.map((path) => closedFolder(account, path)))).find(
    (path) => path !== undefined,
  )
  if (closed === undefined) return { file, args, uid: account.uid, gid: account.gid }

  const capability = await passingCapability()
  if (capability === undefined) {
    throw new EmbeddedPostgresError(
      `PostgreSQL refuses to run as root, and the account ${account.name} cannot enter ${closed}. Run the service as an ordinary user, ` +
        `or keep it and CADRE_DATA_DIR where others may enter (/opt, /var/lib). ${remedy}`,
    )
  }
  const change = [`--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups', '--no-new-privs']
  // Without this securebit, access(2), which initdb uses to find its programs, ignores the capability.
  const allow = [
    '--securebits=+no_setuid_fixup',
    `--inh-caps=-all,+${capability}`,
    `--ambient-caps=-all,+${capability}`,
  ]
  return { file: 'setpriv', args: [...change, ...allow, file, ...args] }
}

/** The topmost parent folder of `path` that `account` may not enter, by its mode; access control lists are ignored. */
async function closedFolder(account: Account, path: string): Promise<string | undefined> {
  let folder = await realpath(path)
  let closed: string | undefined
  while (folder !== dirname(folder)) {
    folder = dirname(folder)
    const { uid, gid, mode } = await stat(folder)
    const enter = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001
    if ((mode & enter) === 0) closed = folder
  }
  return closed
}

/** Bits of `CapEff`, the weaker capability first. Containers often have only the second. */
const capabilities = [
  ['dac_read_search', 2],
  ['dac_override', 1],
] as const

async function passingCapability(): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined
  const [, effective = '0'] = /^CapEff:\s*([0-9a-f]+)$/m.exec(await readFile('/proc/self/status', 'utf8')) ?? []
  return capabilities.find(([, bit]) => (BigInt(`0x${effective}`) >> BigInt(bit)) & 1n)?.[0]
}
