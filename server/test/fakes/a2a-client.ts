import { randomUUID } from 'node:crypto'
import { Role, type Message, type SendMessageRequest, type StreamResponse, type Task } from '@a2a-js/sdk'
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  type Client,
} from '@a2a-js/sdk/client'

/** The client of the protocol's own package, for an agent's card, with a key. */
export async function a2aClient(
  card_url: string,
  key: string,
  binding: 'JSONRPC' | 'HTTP+JSON' = 'JSONRPC',
  headers: Record<string, string> = {},
): Promise<Client> {
  const fetchImpl: typeof fetch = (input, init) => {
    const all = new Headers(init?.headers)
    all.set('authorization', `Bearer ${key}`)
    for (const [name, value] of Object.entries(headers)) all.set(name, value)
    return fetch(input, { ...init, headers: all })
  }
  const transports = [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })]
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports,
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
      preferredTransports: [binding],
    }),
  )
  return factory.createFromUrl(card_url, '')
}

/** A message of a user, as the package has it. */
export function a2aMessage(text: string, more: Partial<Message> = {}): Message {
  const content = { $case: 'text' as const, value: text }
  return {
    ...{ messageId: randomUUID(), contextId: '', taskId: '', role: Role.ROLE_USER },
    parts: text === '' ? [] : [{ content, metadata: undefined, filename: '', mediaType: '' }],
    ...{ metadata: undefined, extensions: [], referenceTaskIds: [], ...more },
  }
}

export function a2aRequest(
  message: Message,
  configuration?: Partial<SendMessageRequest['configuration']>,
): SendMessageRequest {
  return {
    tenant: '',
    message,
    configuration: configuration && {
      ...{ acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: false },
      ...configuration,
    },
    metadata: undefined,
  }
}

/** What a client that puts artifacts together has at the end of a stream. */
export function assembled(events: readonly StreamResponse[], of = 'answer'): string {
  let text = ''
  for (const { payload } of events) {
    if (payload?.$case === 'task') text = artifactText(payload.value, of) || text
    if (payload?.$case !== 'artifactUpdate' || payload.value.artifact?.artifactId !== of) continue
    const piece = partsText(payload.value.artifact.parts)
    text = payload.value.append ? text + piece : piece
  }
  return text
}

export function artifactText({ artifacts }: Pick<Task, 'artifacts'>, of = 'answer'): string {
  return partsText(artifacts.find(({ artifactId }) => artifactId === of)?.parts ?? [])
}

export function partsText(parts: Message['parts']): string {
  return parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('')
}
