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

/** Whose task a configuration is of. */
interface PushOwner {
  org_id: string
  task_id: string
  created_by: string
}

/**
 * Keeps a configuration, in place of the one of its id. Throws `INVALID_PARAMS` for an address that may not be reached, and where
 * the task has as many as it may.
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
    throw badMember('url', `is one too many: a task has at most ${a2aBounds.push_configs} configurations`)
  const { token, authentication } = asked
  const row = {
    ...owner,
    id: webhook_id,
    config_id: id,
    url: asked.url,
    scheme: authentication?.scheme ?? null,
    // What the receiver knows: it can check the signature with it.
    secret: secrets.encrypt(secretLabels.webhook, token || authentication?.credentials || newId('wh'), webhook_id),
    headers: secrets.encrypt(secretLabels.push_headers, JSON.stringify(headersOf(asked)), webhook_id),
  }
  await insertPush(tx, row)
  return pushView({ ...row, config_id: id })
}

/** Headers of every request, as the protocol says. */
function headersOf({ token, authentication }: AskedPush): Record<string, string> {
  return {
    ...(token !== '' && { 'x-a2a-notification-token': token }),
    ...(authentication && { authorization: `${authentication.scheme} ${authentication.credentials}`.trim() }),
  }
}

/** A configuration as it is shown: without its secrets. */
export function pushView({ config_id, task_id, url, scheme }: PushRow): TaskPushNotificationConfig {
  const authentication = scheme === null ? undefined : { scheme, credentials: '' }
  return { tenant: '', id: config_id, taskId: task_id, url, token: '', authentication }
}
