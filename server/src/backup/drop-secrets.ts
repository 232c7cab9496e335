import { randomBytes } from 'node:crypto'
import { givenUpMax, giveUpPending } from '../events/webhooks/endpoint-lease-rows.ts'
import type { Sql } from '../platform/postgres/database.ts'
import type { Secrets } from '../platform/crypto/secrets.ts'
import { secretLabels } from '../platform/crypto/secret-labels.ts'

/** Secrets that were removed from restored data because their key is lost. The operator has to set them again. */
export interface DroppedSecrets {
  /** Agents without their environment variables, by name. */
  agents: string[]
  /** Deleted credentials of projects, by name. */
  credentials: string[]
  /** Model providers of organizations without their API key, by name. */
  model_providers: string[]
  /** Disabled webhooks, by URL. */
  webhooks: string[]
  /** Paused triggers, by name; each needs a new secret. */
  triggers: string[]
}

/**
 * Removes everything from restored data that only a lost key can decrypt, so that nothing runs with unreadable secrets.
 * Webhooks are disabled, because a receiver cannot verify their signatures until it has the new secret.
 */
export async function dropSecrets(tx: Sql, secrets: Secrets): Promise<DroppedSecrets> {
  const agents = await tx<{ name: string }>`
    update agent set environment = null where environment is not null returning name`
  await tx`update agent_version set environment = null where environment is not null`
  // Models then get earlier turns without their reasoning.
  await tx`update task_step set turn = null where turn is not null`
  const credentials = await tx<{ name: string }>`delete from credential returning name`
  const model_providers = await tx<{ name: string }>`
    update model_provider set api_key = null, key_preview = null where api_key is not null returning name`
  await tx`
    update organization set model_providers_version = model_providers_version + 1
    where id in (select org_id from model_provider)`
  const webhooks = await tx<{ id: string; url: string }>`select id, url from webhook order by id`
  for (const { id } of webhooks) {
    const secret = secrets.encrypt(secretLabels.webhook, randomBytes(32).toString('base64url'), id)
    await tx`
      update webhook set secret = ${secret}, push_headers = null, previous_secret = null, previous_secret_until = null,
        status = 'disabled', disabled_reason = 'requested', disabled_at = coalesce(disabled_at, now()) where id = ${id}`
    while ((await giveUpPending(tx, id)) === givenUpMax);
  }
  const triggers = await tx<{ id: string; name: string }>`
    update trigger set status = 'paused', previous_secret = null, previous_secret_until = null returning id, name`
  for (const { id } of triggers) {
    const secret = secrets.encrypt(secretLabels.trigger, randomBytes(32).toString('base64url'), id)
    await tx`update trigger set secret = ${secret} where id = ${id}`
  }
  // The next start makes the signing key of OAuth and the key id again.
  await tx`delete from service_secret`
  await tx`delete from idempotency`
  const names = (rows: readonly { name: string }[]): string[] => rows.map(({ name }) => name).toSorted()
  return {
    agents: names(agents),
    credentials: names(credentials),
    model_providers: names(model_providers),
    webhooks: webhooks.map(({ url }) => url),
    triggers: names(triggers),
  }
}
