import type { Logger } from 'pino'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import type { ModelMessage, ProviderTurn } from '../models/model.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** Turns of models as they are kept: encrypted, so that reasoning that only its provider may read is stored nowhere in the clear. */
export interface Turns {
  /** A turn as it is kept, in base64. */
  seal(reader: TurnReader, turn: ProviderTurn): string
  /** Messages with the turns that were kept with them; without those that cannot be read. */
  open(reader: TurnReader, messages: readonly StoredMessage[]): ModelMessage[]
}

/** Whose turns they are, and those that were made or read before: each call of a model has all turns before it. */
export interface TurnReader {
  agent_id: string
  /** By how they are kept. */
  known_turns: Map<string, ProviderTurn>
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
    seal({ agent_id, known_turns }, turn) {
      const kept = secrets.encrypt(secretLabels.model_turn, JSON.stringify(turn), agent_id).toString('base64')
      known_turns.set(kept, turn)
      return kept
    },
    open: ({ agent_id, known_turns }, messages) =>
      messages.map(({ encrypted_turn, ...message }) => {
        if (encrypted_turn === undefined) return message
        const turn = known_turns.get(encrypted_turn) ?? read(agent_id, encrypted_turn)
        if (!turn) return message
        known_turns.set(encrypted_turn, turn)
        return { ...message, turn }
      }),
  }
}
