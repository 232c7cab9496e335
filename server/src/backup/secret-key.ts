import { makeSecrets } from '../platform/crypto/secrets.ts'
import type { ArchiveContent } from './archive-reader.ts'
import { BackupError } from './backup-error.ts'

/** An available secret key, and its source for messages. */
export interface KnownKey {
  text: string
  from: string
}

/**
 * Chooses the key for restored secrets: an available one, or else that of the archive, which the caller must store
 * (`isNew`). Undefined if the archive needs none.
 * @throws BackupError if no available key is that of the archive
 */
export function chooseSecretKey(
  { manifest: { key_id }, secret_key }: Pick<ArchiveContent, 'manifest' | 'secret_key'>,
  here: readonly KnownKey[],
  file: string,
): { text: string; isNew: boolean } | undefined {
  if (key_id === null) return undefined
  const remedy = `Copy the file secret.key of the service that made the backup to ${file}, or set CADRE_SECRET_KEY or CADRE_SECRET_KEY_FALLBACK to its key.`
  const lost = 'If the key is lost, --without-secrets restores everything else.'
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
      `The secrets in the archive are encrypted with the key ${key_id}, and no secret key was found. ${remedy} ${lost}`,
    )
  const archived_id = makeSecrets(secret_key).key_id
  if (archived_id !== key_id)
    throw new BackupError(
      `The archive has the key ${archived_id}, but its secrets are encrypted with ${key_id}. ${remedy} ${lost}`,
    )
  return { text: secret_key, isNew: true }
}
