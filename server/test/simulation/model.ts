import { setTimeout as delay } from 'node:timers/promises'
import { ModelError, type Model, type ModelAnswer, type ModelRequest } from '../../src/engine/models/model.ts'
import { noTools, type Tool, type Toolset } from '../../src/engine/tools/tool.ts'
import type { Rng } from '../rng.ts'
import type { Faults } from './faults.ts'
import type { SimulatedStore } from './store.ts'
import type { VirtualTime } from './virtual-time.ts'
import type { Witness } from './witness.ts'

export interface ModelOptions {
  time: VirtualTime
  rng: Rng
  faults: Faults
  store: SimulatedStore
  witness: Witness
  /** Until then it refuses every call. */
  outage: { until: number }
  /** The longest that it asks to be left alone. */
  retryAfterMax_seconds: number
}

/** Longer than any call may take. */
const hang_ms = 700_000

/** A provider that thinks, answers, refuses with and without a word about when to come again, and hangs, by chance. */
export function simulatedModel(options: ModelOptions): Model {
  const { time, rng, faults, store, witness } = options
  return {
    provider: 'simulated',
    async call(request) {
      const row = store.tasks.get(request.messages[0]!.content)!
      const attempt = time.scope.getStore()?.attempt ?? 0
      witness.asked(row, attempt)
      await delay(faults.hits('model hangs') ? hang_ms : rng.between(50, 3000), undefined, {
        signal: request.signal,
      })
      const refusal = refuse(options)
      if (!refusal) return answer(request, rng)
      witness.refused(row, attempt, refusal.retry_after)
      throw refusal
    },
  }
}

function refuse({ time, rng, faults, outage, retryAfterMax_seconds }: ModelOptions): ModelError | undefined {
  if (faults.hits('model is nonsense'))
    return new ModelError('provider_bad_answer', 'nonsense', { retryable: false, retry_after: undefined })
  if (time.now >= outage.until && !faults.hits('model refuses')) return undefined
  const retry_after = rng.happens(0.4) ? rng.between(1, retryAfterMax_seconds * 1000) / 1000 : undefined
  const code = rng.pick(['provider_rate_limited', 'provider_unavailable', 'provider_timeout'] as const)
  return new ModelError(code, 'come again', { retryable: true, retry_after })
}

/** Calls of a tool that a task's model asks for, one after the other. */
function roundsOf(input: string): number {
  return Number(input.at(-1)) % 3
}

function answer(request: ModelRequest, rng: Rng): ModelAnswer {
  const { messages, max_tokens = 1000 } = request
  const done = messages.filter(({ role }) => role === 'tool').length
  const rounds = roundsOf(messages[0]!.content)
  const text = `${messages[0]!.content} ${done} ${'word '.repeat(rng.between(1, 40))}`
  request.on_delta?.(text)
  const argv = { number: done }
  const length = messages.reduce((sum, { content }) => sum + content.length, 0)
  return {
    text,
    tool_calls: done < rounds ? [{ id: '', name: 'note', arguments: argv }] : [],
    finish_reason: done < rounds ? 'tool_calls' : 'stop',
    model: request.model,
    usage: {
      // Now and then more than any estimate from its length.
      input_tokens: Math.ceil(length / rng.between(2, 5)) + rng.between(0, 20),
      output_tokens: rng.between(1, max_tokens),
      cached_tokens: 0,
    },
    network: { bytes_in: 100, bytes_out: 100 },
  }
}

/** One tool that may be called again. */
export function simulatedTools(rng: Rng): Toolset {
  const note: Tool = {
    name: 'note',
    description: 'Takes a note.',
    parameters: { type: 'object' },
    safety: 'safe',
    async call({ number }, { signal }) {
      await delay(rng.between(1, 500), undefined, { signal })
      return { content: `noted ${String(number)}` }
    },
  }
  return { ...noTools, tools: new Map([[note.name, note]]) }
}
