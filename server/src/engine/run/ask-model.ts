import { callModel, notAsked, type CallContext } from './model-call.ts'
import { type CallResult, providerFailed } from './model-call-result.ts'
import { type StopContext, waitForCooldown } from './run-guard.ts'
import type { CallEnd } from '../models/circuit-breaker.ts'
import type { Cooldown } from '../models/cooldown.ts'
import type { ModelError } from '../models/model.ts'
import type { StartedCall, Run } from './run.ts'

/**
 * Calls the model of a step, after a cooldown if its provider asked for one, unless the circuit breaker is open. The
 * outcome updates the model's cooldown and circuit breaker, which all calls share.
 */
export async function askModel(
  run: Run,
  { step, model, signal }: StartedCall,
  context: Omit<CallContext, 'signal' | 'onBegun'> & StopContext,
): Promise<CallResult> {
  if (model === undefined) return callModel(run, step, { ...context, signal })
  const busy = await waitForCooldown(model, context, signal)
  // A call that is not made must not use up the agent's retries sooner than a failed one.
  if (busy) return notAsked(providerFailed(run, step, busy, context.random, 'least'))
  const entered = context.circuitBreaker.enter(model)
  if ('refusal' in entered) return notAsked(providerFailed(run, step, entered.refusal, context.random, 'least'))
  let end: CallEnd = 'cut'
  let hasStarted = false
  const onStarted = (): void => {
    // Callers that wait for the first answer need not wait for the end of a long one.
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
      // A call that was not made says nothing about the model.
      end = 'consumed' in result.change ? result.error : 'cut'
      if (end !== 'cut') noteCooldown(context.cooldown, model, result.error)
    }
    return result
  } finally {
    entered.ended(end)
  }
}

/** Records when the provider wants to be asked again, for all other calls of the model. */
function noteCooldown(cooldown: Cooldown, model: string, { code, retry_after }: ModelError): void {
  const isBusy = code === 'provider_rate_limited' || code === 'provider_unavailable'
  if (isBusy && retry_after !== undefined) cooldown.note(model, retry_after, code)
  else cooldown.answered(model)
}
