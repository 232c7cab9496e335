import type { AccessTokens } from '../credentials/access-tokens.ts'
import { CredentialUnavailable } from '../credentials/credential-unavailable.ts'
import { safetyOf, ToolError, type Tool, type ToolAnswer, type ToolCallContext } from './tool.ts'

/** The access tokens of a tool's credentials. */
export interface TokensOfTool {
  tokens: AccessTokens
  /** The credentials that its definition names: ids by name. */
  credentials: ReadonlyMap<string, string>
  /** Sets the token for `${credentials.NAME}`. */
  put(name: string, token: string): void
}

/**
 * Wraps a tool so that each call has valid tokens. If its server refuses them (401), they are renewed, and the call is
 * repeated if that is harmless: it is `safe` or `keyed`, or was not sent.
 * @throws CredentialUnavailable if there is no token to be had; the call had no effect then
 */
export function withTokens(tool: Tool, { tokens, credentials, put }: TokensOfTool): Tool {
  if (credentials.size === 0) return tool
  const take = async (
    { signal }: ToolCallContext,
    refused: ReadonlyMap<string, number> = new Map(),
  ): Promise<Map<string, number>> => {
    const taken = new Map<string, number>()
    for (const [name, id] of credentials) {
      const token = await tokens.get(id, { signal, refused: refused.get(name) })
      // Without a token, the placeholder has no value, and the call fails with that error.
      if (!token) continue
      put(name, token.value)
      taken.set(name, token.generation)
    }
    return taken
  }
  return {
    ...tool,
    async call(args, context) {
      const taken = await take(context)
      const first = await attempt(tool, args, context)
      if (first.unauthorized === undefined) return settle(first)
      const mayRepeat = first.unauthorized === 'unsent' || safetyOf(tool, args) !== 'unsafe'
      if (mayRepeat) {
        const next = await take(context, taken)
        const isNew = [...next].some(([name, generation]) => generation !== taken.get(name))
        return settle(isNew ? await attempt(tool, args, context) : first)
      }
      // Renewed for the next call.
      await take(context, taken).catch((error: unknown) => {
        if (!(error instanceof CredentialUnavailable)) throw error
      })
      return settle(first)
    },
  }
}

/** The result of a call, and whether its server refused the credentials. */
type Attempt = ({ answer: ToolAnswer } | { error: unknown }) & { unauthorized: 'sent' | 'unsent' | undefined }

async function attempt(tool: Tool, args: Record<string, unknown>, context: ToolCallContext): Promise<Attempt> {
  try {
    const answer = await tool.call(args, context)
    return { answer, unauthorized: answer.error?.code === 'http_401' ? 'sent' : undefined }
  } catch (error) {
    return { error, unauthorized: error instanceof ToolError ? error.unauthorized : undefined }
  }
}

function settle(attempt: Attempt): ToolAnswer {
  if ('error' in attempt) throw attempt.error
  return attempt.answer
}
