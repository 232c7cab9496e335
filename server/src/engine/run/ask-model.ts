import { callModel, notAsked, type CallContext } from './model-call.ts'
import { type CallResult, providerFailed } from './model-call-result.ts'
import { type StopContext, waitForCooldown } from './run-guard.ts'
import type { CallEnd } from '../models/circuit-breaker.ts'
import type { Cooldown } from '../models/cooldown.ts'
import type { ModelError } from '../models/model.ts'
import type { StartedCall, Run } from './run.ts'

/**
 * Calls the model of a step once it may be asked, unless it is left alone: it asked for patience once more, or does not answer.
 * All others learn from how that ends.
 */
export async function askModel(
  run: Run,
  { step, model, signal }: StartedCall,
  context: Omit<CallContext, 'signal' | 'onBegun'> & StopContext,
): Promise<CallResult> {
  if (model === undefined) return callModel(run, step, { ...context, signal })
  const busy = await waitForCooldown(model, context, signal)
  // The agent's own patience is not used up sooner by a model that is left alone for a moment.
  if (busy) return notAsked(providerFailed(run, step, busy, context.random, 'least'))
  const entered = context.circuitBreaker.enter(model)
  if ('refusal' in entered) return notAsked(providerFailed(run, step, entered.refusal, context.random, 'least'))
  let end: CallEnd = 'cut'
  let hasStarted = false
  const onStarted = (): void => {
    // Callers that wait for the first answer need not wait until a long answer ends.
    if (!hasStarted) {
      entered.ended('answered')
      context.cooldown.answered(model)
    }
    hasStarted = true
  }
  try {
    const result = await callModel(run, step, { ...context, signal, onStarted })
    if (result.outcome === 'answered') {
      end = 'answered'
      context.cooldown.answered(model)
    }
    if (result.outcome === 'failed') {
      // A call that was not made tells nothing of the model.
      end = 'consumed' in result.change ? result.error : 'cut'
      if (end !== 'cut') noteCooldown(context.cooldown, model, result.error)
    }
    return result
  } finally {
    entered.ended(end)
  }
}

/** Where a provider said when it wants to be asked again, all other calls of that model know it from now on. */
function noteCooldown(cooldown: Cooldown, model: string, { code, retry_after }: ModelError): void {
  const isBusy = code === 'provider_rate_limited' || code === 'provider_unavailable'
  if (isBusy && retry_after !== undefined) cooldown.note(model, retry_after, code)
  else cooldown.answered(model)
}
