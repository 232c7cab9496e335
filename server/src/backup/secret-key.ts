import { makeSecrets } from '../platform/crypto/secrets.ts'
import type { ArchiveContent } from './archive-reader.ts'
import { BackupError } from './backup-error.ts'

/** A secret key that is here, and what the operator knows it as. */
export interface KnownKey {
  text: string
  from: string
}

/**
 * The key that restored secrets are read with: one that is here, or else the one of the archive, which is then to be
 * kept as `isNew`. Undefined where the archive needs none. Throws a `BackupError` that says what to do where there is none, or
 * another: started with that, the service could read no secret.
 */
export function chooseSecretKey(
  { manifest: { key_id }, secret_key }: Pick<ArchiveContent, 'manifest' | 'secret_key'>,
  here: readonly KnownKey[],
  file: string,
): { text: string; isNew: boolean } | undefined {
  if (key_id === null) return undefined
  const remedy = `Put the file secret.key of the data folder that the backup was made in to ${file}, or set CADRE_SECRET_KEY or CADRE_SECRET_KEY_FALLBACK to what the service had.`
  const lost = 'Where the key is lost, --without-secrets restores everything else.'
  if (here.length > 0) {
    const ids = here.map(({ text }) => makeSecrets(text).key_id)
    const own = here[ids.indexOf(key_id)]
    if (own) return { text: own.text, isNew: false }
    const known = here.map(({ from }, at) => `${from} is the key ${ids[at]}`).join(', and ')
    throw new BackupError(
      `The secrets in the archive are encrypted with the key ${key_id}, and ${known}. ${remedy} ${lost}`,
    )
  }
  if (secret_key === undefined)
    throw new BackupError(
      `The secrets in the archive are encrypted with the key ${key_id}, and there is no key here. ${remedy} ${lost}`,
    )
  const archived_id = makeSecrets(secret_key).key_id
  if (archived_id !== key_id)
    throw new BackupError(`The archive holds the key ${archived_id}, but its secrets are encrypted with ${key_id}.`)
  return { text: secret_key, isNew: true }
}
