import { randomBytes } from 'node:crypto'
import { givenUpMax, giveUpPending } from '../events/webhooks/endpoint-lease-rows.ts'
import type { Sql } from '../platform/postgres/database.ts'
import type { Secrets } from '../platform/crypto/secrets.ts'
import { secretLabels } from '../platform/crypto/secret-labels.ts'

/** What was removed from restored data because its key is lost: listed, so that the operator can set it again. */
export interface DroppedSecrets {
  /** Agents without their environment variables, by name. */
  agents: string[]
  /** Credentials of projects that are gone, by name. */
  credentials: string[]
  /** Model providers of organizations that lost their key, by name. */
  model_providers: string[]
  /** Webhooks that are disabled because their secret is lost, by URL. */
  webhooks: string[]
  /** Triggers that are paused because their secret is lost, by name: each needs another one. */
  triggers: string[]
}

/**
 * Takes everything out of restored data that only a lost key could read, so that nothing works on with half of what it
 * needs. Webhooks are disabled: a receiver could not tell their signatures from forged ones until it has their new secret.
 */
export async function dropSecrets(tx: Sql, secrets: Secrets): Promise<DroppedSecrets> {
  const agents = await tx<{ name: string }>`
    update agent set environment = null where environment is not null returning name`
  await tx`update agent_version set environment = null where environment is not null`
  // Turns of models go back without their reasoning then.
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
  // Made anew by the next start: the signing key of OAuth, and whose key this is.
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
