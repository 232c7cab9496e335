import type { Credential } from '#sdk/types.ts'

/** States of a credential's tokens as people read them. */
export const tokenStateWords = {
  connected: 'connected',
  needs_authorization: 'not connected',
  failing: 'failing',
} as const

/** States of a credential as people read them. */
export const stateWords = { ...tokenStateWords, unreadable: 'unreadable' } as const

export const typeNames: Record<Credential['type'], string> = { secret: 'Secret', oauth2: 'OAuth' }

/** Whether a person connects it in a browser. */
export function isConnectable({ type, grant }: Pick<Credential, 'type' | 'grant'>): boolean {
  return type === 'oauth2' && grant === 'authorization_code'
}
