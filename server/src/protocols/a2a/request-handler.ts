import type { AgentCard, StreamResponse } from '@a2a-js/sdk'
import type { A2ARequestHandler } from '@a2a-js/sdk/server'

/**
 * A handler for the protocol's package that returns results of work that is already done. The package only serializes
 * them for its protocol version.
 */
export function requestHandler(
  result: unknown,
  events: () => AsyncGenerator<StreamResponse, void, undefined> = none,
  card?: AgentCard,
): A2ARequestHandler {
  const done = async (): Promise<never> => result as never
  return {
    getAgentCard: async () =>
      card ?? ({ capabilities: { streaming: true, pushNotifications: true, extensions: [] } } as unknown as AgentCard),
    getAuthenticatedExtendedAgentCard: done,
    sendMessage: done,
    sendMessageStream: events,
    getTask: done,
    cancelTask: done,
    createTaskPushNotificationConfig: done,
    getTaskPushNotificationConfig: done,
    listTaskPushNotificationConfigs: done,
    deleteTaskPushNotificationConfig: done,
    resubscribe: events,
    listTasks: done,
  }
}

async function* none(): AsyncGenerator<StreamResponse, void, undefined> {}
