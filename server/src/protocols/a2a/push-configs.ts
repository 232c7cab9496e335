import type { TaskPushNotificationConfig } from '@a2a-js/sdk'
import { a2aBounds } from '#contract/doors/a2a.ts'
import type { Context } from '../../context.ts'
import { EgressRefused } from '../../platform/egress/safe-fetch.ts'
import { newId } from '../../platform/ids.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { insertPush, listPushes, deletePush, type PushRow } from './push-configs.queries.ts'
import { badMember } from './problems.ts'
import type { AskedPush } from './read-message.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** The task of a configuration, with its organization and the user who created the configuration. */
interface PushOwner {
  org_id: string
  task_id: string
  created_by: string
}

/**
 * Stores a configuration; replaces one with the same id. Throws `INVALID_PARAMS` if the egress rules refuse the URL,
 * or if the task has too many configurations.
 */
export async function storePush(
  tx: Sql,
  { egress, secrets }: Pick<Context, 'egress' | 'secrets'>,
  owner: PushOwner,
  asked: AskedPush,
): Promise<TaskPushNotificationConfig> {
  try {
    egress.check(asked.url, 'webhook')
  } catch (error) {
    if (!(error instanceof EgressRefused)) throw error
    throw badMember('url', error.message)
  }
  const { task_id } = owner
  const webhook_id = newId('wh')
  const id = asked.id ?? webhook_id
  await tx`select 1 from task where id = ${task_id} for update`
  await deletePush(tx, task_id, id)
  if ((await listPushes(tx, task_id)).length >= a2aBounds.push_configs)
    throw badMember('url', `cannot be added: a task may have at most ${a2aBounds.push_configs} configurations`)
  const { token, authentication } = asked
  const row = {
    ...owner,
    id: webhook_id,
    config_id: id,
    url: asked.url,
    scheme: authentication?.scheme ?? null,
    // A secret that the receiver knows, so that it can verify the signature.
    secret: secrets.encrypt(secretLabels.webhook, token || authentication?.credentials || newId('wh'), webhook_id),
    headers: secrets.encrypt(secretLabels.push_headers, JSON.stringify(headersOf(asked)), webhook_id),
  }
  await insertPush(tx, row)
  return pushView({ ...row, config_id: id })
}

/** The headers that the protocol defines for every request. */
function headersOf({ token, authentication }: AskedPush): Record<string, string> {
  return {
    ...(token !== '' && { 'x-a2a-notification-token': token }),
    ...(authentication && { authorization: `${authentication.scheme} ${authentication.credentials}`.trim() }),
  }
}

/** A configuration in a response, without its secrets. */
export function pushView({ config_id, task_id, url, scheme }: PushRow): TaskPushNotificationConfig {
  const authentication = scheme === null ? undefined : { scheme, credentials: '' }
  return { tenant: '', id: config_id, taskId: task_id, url, token: '', authentication }
}
