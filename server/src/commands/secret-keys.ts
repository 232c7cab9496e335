import type { KnownKey } from '../backup/secret-key.ts'
import type { Config } from '../config/config.ts'
import { makeSecrets, type Secrets } from '../platform/crypto/secrets.ts'
import { findSecretKey } from '../platform/embedded-postgres/data-folder.ts'
import { CommandError } from './command.ts'

/** The key that the service would encrypt with; undefined if there is none yet. */
export async function keyHere({ secret_key, data_dir }: Config): Promise<KnownKey | undefined> {
  if (secret_key !== undefined) return { text: secret_key, from: 'CADRE_SECRET_KEY' }
  const text = await findSecretKey(data_dir)
  return text === undefined ? undefined : { text, from: `${data_dir}/secret.key` }
}

/** The keys that the service would decrypt with. */
export async function keysHere(config: Config): Promise<KnownKey[]> {
  const key = await keyHere(config)
  const { secret_key_fallback: text } = config
  return [...(key ? [key] : []), ...(text === undefined ? [] : [{ text, from: 'CADRE_SECRET_KEY_FALLBACK' }])]
}

/** The secrets that the service would use. Throws `CommandError` if there is no key. */
export async function secretsHere(config: Config): Promise<Secrets> {
  const key = await keyHere(config)
  if (!key)
    throw new CommandError(
      `No secret key was found: ${config.data_dir} has no secret.key, and CADRE_SECRET_KEY is not set.`,
    )
  return makeSecrets(key.text, config.secret_key_fallback)
}
