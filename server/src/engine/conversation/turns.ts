import type { Logger } from 'pino'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import type { ModelMessage, ProviderTurn } from '../models/model.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** Turns of models as they are kept: encrypted, so that reasoning that only its provider may read is nowhere in the clear. */
export interface Turns {
  /** A turn as it is kept, in base64. */
  seal(agent_id: string, turn: ProviderTurn): string
  /** Messages with the turns that were kept with them; without those that cannot be read. */
  open(agent_id: string, messages: readonly StoredMessage[]): ModelMessage[]
}

/** A message of a conversation, with the turn as it is kept. */
export interface StoredMessage extends ModelMessage {
  encrypted_turn?: string
}

export function makeTurns(secrets: Secrets, log: Logger): Turns {
  const read = (agent_id: string, encrypted: string): ProviderTurn | undefined => {
    try {
      return JSON.parse(
        secrets.decrypt(secretLabels.model_turn, Buffer.from(encrypted, 'base64'), agent_id),
      ) as ProviderTurn
    } catch (error) {
      log.warn({ err: error, agent_id }, "a model's turn cannot be decrypted; it goes back without its reasoning")
      return undefined
    }
  }
  return {
    seal: (agent_id, turn) =>
      secrets.encrypt(secretLabels.model_turn, JSON.stringify(turn), agent_id).toString('base64'),
    open: (agent_id, messages) =>
      messages.map(({ encrypted_turn, ...message }) => {
        const turn = encrypted_turn === undefined ? undefined : read(agent_id, encrypted_turn)
        return turn ? { ...message, turn } : message
      }),
  }
}
