import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeSecrets } from '../platform/crypto/secrets.ts'
import type { ArchiveContent } from './archive-reader.ts'
import { chooseSecretKey } from './secret-key.ts'

const [before, now] = ['the key of the archive, of 32 characters', 'the key that replaced it, of 32 characters']
const archive = {
  manifest: { key_id: makeSecrets(before).key_id } as ArchiveContent['manifest'],
  secret_key: undefined,
}
const own = { text: now, from: 'CADRE_SECRET_KEY' }

test('an archive from before a rotation is restored with the old key as the fallback, and refused without it', () => {
  const fallback = { text: before, from: 'CADRE_SECRET_KEY_FALLBACK' }
  assert.deepEqual(chooseSecretKey(archive, [own, fallback], 'secret.key'), { text: before, isNew: false })
  assert.throws(
    () => chooseSecretKey(archive, [own], 'secret.key'),
    /and CADRE_SECRET_KEY is the key [0-9a-f]{8}\. Copy the file secret\.key/,
  )
})
