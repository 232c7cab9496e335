/** How a provider refuses a request: its status and the members of its error. */
export interface Refusal {
  status: number
  /** `invalid_request_error` unless something else is said. */
  type?: string
  message: string
  /** OpenAI's only. */
  param?: string | null
  /** OpenAI's only. */
  code?: string | null
}

/** What a check of a request knows beside it. */
export interface StrictState {
  memory: FakeMemory
  /** Whose chat completions these are; by default by the name of the model. */
  strict_as?: 'openai' | 'compatible' | undefined
}

/** A reasoning item of OpenAI as it was produced. */
export interface ProducedReasoning {
  id: string
  encrypted_content: string | undefined
  summary: string[]
  /** What came after it: it may not come back without that. */
  next?: { type: string; id: string; call_id?: string }
}

/** A thinking block of Anthropic as it was produced. */
export type ProducedThinking =
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'redacted_thinking'; data: string }

/** The turn of Anthropic's model that a call belongs to: its thinking, and the order of thinking and calls by their keys. */
export interface ProducedTurn {
  thinking: ProducedThinking[]
  order: string[]
}

/** How many of each are remembered: the real services forget nothing, a test must not grow without end. */
const kept = 20_000

/** What a fake service has given away, so that it knows it again when it comes back. */
export class FakeMemory {
  #ids = 0
  /** OpenAI's reasoning items by their id. */
  readonly reasoning = new BoundedMap<ProducedReasoning>()
  /** The same by what is encrypted in them. */
  readonly encrypted = new BoundedMap<ProducedReasoning>()
  /** Which reasoning item a call or a message belongs to, by `id` and by `call_id`. */
  readonly needs = new BoundedMap<string>()
  /** Items of answers that were to be stored, by id. */
  readonly stored = new BoundedMap<string>()
  /** Anthropic's blocks by their signature or their data. */
  readonly thinking = new BoundedMap<ProducedThinking>()
  /** The turn that a call belongs to, by the id of the call. */
  readonly turns = new BoundedMap<ProducedTurn>()
  /** `reasoning_content` that came with a call, by the id of the call. */
  readonly contents = new BoundedMap<string>()

  /** An id that this service gives once. */
  id(prefix: string): string {
    return `${prefix}_${++this.#ids}`
  }
}

class BoundedMap<T> {
  readonly #map = new Map<string, T>()

  get(key: string): T | undefined {
    return this.#map.get(key)
  }

  /** Remembers a value; `undefined` forgets what was under this key. */
  set(key: string, value: T | undefined): void {
    this.#map.delete(key)
    if (value === undefined) return
    this.#map.set(key, value)
    const [oldest] = this.#map.keys()
    if (this.#map.size > kept && oldest !== undefined) this.#map.delete(oldest)
  }
}
