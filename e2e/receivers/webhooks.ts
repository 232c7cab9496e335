import type { Send } from '../../server/test/harness.ts'
import { secretOf } from './behaviours.ts'
import type { Receivers } from './receivers.ts'

/** A webhook that was registered, at the receiver of its path. */
export interface RegisteredWebhook {
  id: string
  path: string
  url: string
  events: readonly string[]
}

/** Registrations at a time. */
const atOnce = 8

/** Registers webhooks through the API, for the receivers of these paths; in the order of the paths. */
export async function registerWebhooks(
  { send, receivers }: { send: Send; receivers: Pick<Receivers, 'url'> },
  paths: readonly Parameters<Receivers['url']>[0][],
  events: readonly string[] = ['project.created'],
): Promise<RegisteredWebhook[]> {
  const registered: RegisteredWebhook[] = []
  const left = paths.map((path, index) => ({ path, index })).toReversed()
  const register = async (): Promise<void> => {
    for (let next = left.pop(); next; next = left.pop()) {
      const { path, index } = next
      const url = receivers.url(path)
      const { status, body } = await send('POST', '/api/v1/webhooks', { body: { url, events, secret: secretOf(path) } })
      if (status !== 201) throw new Error(`not registered: ${status} ${JSON.stringify(body)}`)
      registered[index] = { id: body.id, path, url, events }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, register))
  return registered
}
