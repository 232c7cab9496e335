import { providerTest_seconds, type modelProviderStates } from '#contract/models/model-providers.ts'
import { ModelError } from '../model.ts'
import { checkProvider } from '../providers/provider-check.ts'
import type { OrganizationModels } from './organization-models.ts'
import type { ProviderRow } from './provider-rows.queries.ts'

/** The result of a test. */
export interface ProviderTest {
  ok: boolean
  status: (typeof modelProviderStates)[number]
  /** The error as a sentence; null if the test succeeded. */
  error: string | null
  models: string[]
  duration_ms: number
}

/** Maximum tokens of the answer: enough for a word, and for models that reason first. */
const answerTokens = 1024

/**
 * Requests a provider's list of models or, with `model`, an answer of one word. An error of the provider is the result
 * and is not thrown. Takes at most `providerTest_seconds`.
 */
export async function testProvider(
  models: OrganizationModels,
  row: ProviderRow,
  model: string | undefined,
): Promise<ProviderTest> {
  const began = performance.now()
  const result = model === undefined ? await askForModels(models, row) : await askModel(models, row, model)
  return { ...result, ok: result.error === null, duration_ms: Math.round(performance.now() - began) }
}

type Result = Pick<ProviderTest, 'status' | 'error' | 'models'>

function askForModels(models: OrganizationModels, row: ProviderRow): Promise<Result> {
  return checkProvider(models.open(row), models.judge)
}

async function askModel(models: OrganizationModels, row: ProviderRow, model: string): Promise<Result> {
  const signal = AbortSignal.timeout(providerTest_seconds * 1000)
  try {
    await models.model(row).call({
      model,
      system_prompt: undefined,
      messages: [{ role: 'user', content: 'Answer with the word OK.' }],
      tools: [],
      temperature: undefined,
      max_tokens: answerTokens,
      signal,
    })
    return { status: 'reachable', error: null, models: [] }
  } catch (error) {
    if (signal.aborted)
      return { status: 'unreachable', error: `It did not answer within ${providerTest_seconds} s.`, models: [] }
    if (!(error instanceof ModelError)) throw error
    return { status: stateOf(error), error: error.message, models: [] }
  }
}

function stateOf({ code }: ModelError): ProviderTest['status'] {
  if (code === 'secret_unreadable') return 'unreadable'
  if (code === 'provider_credentials_refused') return 'refused'
  return code === 'provider_unavailable' || code === 'provider_timeout' ? 'unreachable' : 'reachable'
}
