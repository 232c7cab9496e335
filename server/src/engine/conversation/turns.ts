import type { Logger } from 'pino'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import type { ModelMessage, ProviderTurn } from '../models/model.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/**
 * Turns of models as stored: encrypted, so that reasoning that only its provider may read is never stored in the clear
 * (decision 0023).
 */
export interface Turns {
  /** Encrypts a turn; returns base64. */
  seal(reader: TurnReader, turn: ProviderTurn): string
  /** Messages with their decrypted turns; turns that cannot be decrypted are left out. */
  open(reader: TurnReader, messages: readonly StoredMessage[]): ModelMessage[]
}

/**
 * The owner of turns, and the turns that were made or decrypted before, because each model call needs all earlier ones.
 */
export interface TurnReader {
  agent_id: string
  /** By the encrypted form. */
  known_turns: Map<string, ProviderTurn>
}

/** A message of a conversation with its encrypted turn. */
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
      log.warn({ err: error, agent_id }, "a model's turn could not be decrypted; it is sent without its reasoning")
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
