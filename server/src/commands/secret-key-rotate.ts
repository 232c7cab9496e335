import { count } from '../backup/progress.ts'
import { WrongSecretKeyAtStart } from '../platform/crypto/secrets.ts'
import { findDatabaseKeys, setDatabaseKey } from '../secret-key/database-key.ts'
import { reencryptAll } from '../secret-key/rotation.ts'
import { CommandError, defineCommand } from './command.ts'
import { withInstallation } from './installation.ts'
import { secretsHere } from './secret-keys.ts'

/** `cadre secret-key rotate`: the step of a key replacement before the old key is removed. */
export const secretKeyRotate = defineCommand({
  description:
    'Encrypts with CADRE_SECRET_KEY (or the file secret.key) everything that is encrypted with CADRE_SECRET_KEY_FALLBACK. Run it with ' +
    'the settings of the service, while the service runs, once every process has both keys and encrypts with the new one. After an ' +
    'interruption, run it again to continue. Then remove CADRE_SECRET_KEY_FALLBACK.',
  examples: [
    'CADRE_SECRET_KEY_FILE=new.key CADRE_SECRET_KEY_FALLBACK_FILE=old.key cadre secret-key rotate',
    'cadre secret-key rotate',
  ],
  arguments: [],
  options: {},
  run: (call) =>
    withInstallation(call, { schema: 'current' }, async ({ config, sql }) => {
      const secrets = await secretsHere(config)
      const keys = await findDatabaseKeys(sql)
      if (!keys) throw new CommandError('No service has started on this database, so it has no secret key to replace.')
      const ids = [keys.current, ...(keys.next === undefined ? [] : [keys.next])]
      const other = ids.find((id) => !secrets.reads(id))
      if (other !== undefined) throw new CommandError(new WrongSecretKeyAtStart(other, secrets.key_id).message)
      if (!ids.includes(secrets.key_id))
        throw new CommandError(
          `No service has started with the secret key ${secrets.key_id} yet. First restart every process of the service with these settings: ` +
            'a process without the new key could not read values that this command encrypts.',
        )
      const columns = await reencryptAll(sql, secrets, {
        onColumn({ what, encrypted }) {
          if (encrypted > 0) call.note(`${what}: ${count(encrypted)} encrypted with ${secrets.key_id}.`)
        },
        signal: call.signal,
      })
      await setDatabaseKey(sql, secrets.key_id)
      const left = columns.filter(({ unreadable }) => unreadable > 0)
      for (const { what, unreadable } of left)
        call.note(`${what}: ${count(unreadable)} cannot be decrypted with either key and were not changed.`)
      call.print(
        `Everything ${left.length > 0 ? 'that can be read ' : ''}is encrypted with the secret key ${secrets.key_id}. ` +
          'Remove CADRE_SECRET_KEY_FALLBACK.',
      )
      return 0
    }),
})
