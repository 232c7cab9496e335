import { makeSecrets } from '../platform/crypto/secrets.ts'
import { count } from '../backup/progress.ts'
import { findDatabaseKeys } from '../secret-key/database-key.ts'
import { findKeyUses } from '../secret-key/rotation.ts'
import { defineCommand } from './command.ts'
import { withInstallation } from './installation.ts'
import { secretsHere } from './secret-keys.ts'

/** Exit code of `cadre secret-key status` if some values are encrypted with another key. */
const otherKeyExit = 3

/** `cadre secret-key status`: shows the progress of a rotation of the secret key. */
export const secretKeyStatus = defineCommand({
  description:
    'Prints the ids of the secret keys, and how many values of each kind are encrypted with each. An id does not reveal its key. ' +
    'Works while the service runs.',
  examples: ['cadre secret-key status', 'cadre secret-key status --json'],
  arguments: [],
  options: { json: { type: 'boolean', description: 'Print one JSON object.' } },
  exits: { [otherKeyExit]: 'Some values are encrypted with another key than CADRE_SECRET_KEY.' },
  run: async (call) => {
    const { key_id, fallback_key_id, database, uses } = await withInstallation(
      call,
      { schema: 'current' },
      async ({ config, sql }) => ({
        key_id: (await secretsHere(config)).key_id,
        fallback_key_id:
          config.secret_key_fallback === undefined ? null : makeSecrets(config.secret_key_fallback).key_id,
        database: await findDatabaseKeys(sql),
        uses: await findKeyUses(sql, call.signal),
      }),
    )
    const { current = null, next = null } = database ?? {}
    if (call.options.json) {
      const keys = { key_id, fallback_key_id, database_key_id: current, next_key_id: next }
      call.print(JSON.stringify({ ...keys, values: uses }, null, 2))
    } else {
      call.print(`Secret key        ${key_id}`)
      call.print(`Fallback          ${fallback_key_id ?? 'none'}`)
      call.print(`Of the database   ${current ?? 'none'}${next === null ? '' : `, being replaced by ${next}`}`)
      for (const { what, key_id: id, values } of uses) call.print(`${id}  ${what}: ${count(values)}`)
    }
    return uses.some((use) => use.key_id !== key_id) ? otherKeyExit : 0
  },
})
