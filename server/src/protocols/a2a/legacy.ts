import {
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  SendMessageRequest,
  SubscribeToTaskRequest,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk'
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server'
import { ServerCallContext, type A2ARequestHandler } from '@a2a-js/sdk/server'
import type { A2aMethod } from '#contract/doors/a2a.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import type { DoorAgent } from '../door-keys.queries.ts'
import { cardOf } from './card.ts'
import { badMember } from './problems.ts'
import { requestHandler } from './request-handler.ts'

/** Methods of version 0.3, with their names in 1.0. */
export const legacyMethods: ReadonlyMap<string, A2aMethod> = new Map([
  ['message/send', 'SendMessage'],
  ['message/stream', 'SendStreamingMessage'],
  ['tasks/get', 'GetTask'],
  ['tasks/cancel', 'CancelTask'],
  ['tasks/resubscribe', 'SubscribeToTask'],
  ['tasks/pushNotificationConfig/set', 'CreateTaskPushNotificationConfig'],
  ['tasks/pushNotificationConfig/get', 'GetTaskPushNotificationConfig'],
  ['tasks/pushNotificationConfig/list', 'ListTaskPushNotificationConfigs'],
  ['tasks/pushNotificationConfig/delete', 'DeleteTaskPushNotificationConfig'],
  ['agent/getAuthenticatedExtendedCard', 'GetExtendedAgentCard'],
])

/** Ends the handler of the package once it has translated the parameters. */
class Translated extends Error {}

/** The parameters of a call of version 0.3, translated to 1.0 by the package. */
export async function readLegacy(
  agent: DoorAgent,
  body: Record<string, unknown>,
  public_url: string,
): Promise<Record<string, unknown>> {
  let params: unknown
  const take =
    (toJSON: (message: never) => unknown) =>
    (message: unknown): never => {
      params = toJSON(message as never)
      throw new Translated()
    }
  const handler = {
    ...requestHandler(null, undefined, cardOf(agent, public_url)),
    sendMessage: take(SendMessageRequest.toJSON),
    sendMessageStream: take(SendMessageRequest.toJSON),
    getTask: take(GetTaskRequest.toJSON),
    cancelTask: take(CancelTaskRequest.toJSON),
    resubscribe: take(SubscribeToTaskRequest.toJSON),
    createTaskPushNotificationConfig: take(TaskPushNotificationConfig.toJSON),
    getTaskPushNotificationConfig: take(GetTaskPushNotificationConfigRequest.toJSON),
    listTaskPushNotificationConfigs: take(ListTaskPushNotificationConfigsRequest.toJSON),
    deleteTaskPushNotificationConfig: take(DeleteTaskPushNotificationConfigRequest.toJSON),
    getAuthenticatedExtendedAgentCard: take(() => ({})),
  }
  const answer = await new LegacyJsonRpcTransportHandler(handler).handle(body, legacyContext())
  if (isObject(params)) return params
  const { error } = answer as { error?: { message?: string } }
  throw badMember('params', error?.message ?? 'could not be read')
}

function legacyContext(): ServerCallContext {
  return new ServerCallContext({ requestedVersion: '0.3' })
}

/** The response to a call of version 0.3. */
export function answerLegacy(handler: A2ARequestHandler, call: Record<string, unknown>, said: ServerCallContext) {
  return new LegacyJsonRpcTransportHandler(handler).handle(call, said)
}

/** The additional members of a card for clients of version 0.3. */
export async function legacyCard(agent: DoorAgent, public_url: string): Promise<Record<string, unknown>> {
  const card = cardOf(agent, public_url)
  const call = { jsonrpc: '2.0', id: 0, method: 'agent/getAuthenticatedExtendedCard' }
  const answer = await answerLegacy(requestHandler(card, undefined, card), call, legacyContext())
  const { result } = answer as { result?: Record<string, unknown> }
  const { url, preferredTransport, protocolVersion, security, supportsAuthenticatedExtendedCard } = result ?? {}
  return { url, preferredTransport, protocolVersion, security, supportsAuthenticatedExtendedCard }
}
