import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'

/** A request of a tool as it reached the witness: its effect has happened. */
export interface Effect {
  /** Which call of which task it is, as its arguments say: the same in every repetition. */
  call: string
  safety: ToolSafety
  /** Its `Idempotency-Key`; undefined where it had none. */
  key: string | undefined
}

/** What the journals say of a call after all is quiet. */
export interface JournaledCall {
  call: string
  /** The tool's own answer is its result; no person stated another. */
  wasAnswered: boolean
  /** How often a person allowed to make it again. */
  repeatsApproved: number
}

/**
 * Whether no step was repeated whose effect may have happened: an `unsafe` call was made once, and once more for each
 * time that a person allowed it; `keyed` calls came with one key each, that no other call had; every call that a journal
 * has an answer of was made. Gives what is wrong.
 */
export function checkEffects(effects: readonly Effect[], journaled: readonly JournaledCall[]): string[] {
  const wrong: string[] = []
  const known = new Map(journaled.map((call) => [call.call, call]))
  const owners = new Map<string, string>()
  for (const [call, all] of Map.groupBy(effects, ({ call }) => call)) {
    const { safety } = all[0]!
    const allowed = 1 + (known.get(call)?.repeatsApproved ?? 0)
    if (!known.has(call)) wrong.push(`${call} was made and is in no journal`)
    if (safety === 'unsafe' && all.length > allowed)
      wrong.push(`${call} is unsafe and was made ${all.length} times, where ${allowed} were allowed`)
    if (safety === 'safe') continue
    const keys = new Set(all.map(({ key }) => key))
    if (keys.has(undefined)) wrong.push(`${call} was made without a key`)
    if (keys.size > 1) wrong.push(`${call} was made with ${keys.size} keys: ${[...keys].join()}`)
    for (const key of keys) {
      if (key === undefined) continue
      const owner = owners.get(key)
      if (owner !== undefined) wrong.push(`${call} was made with the key of ${owner}: ${key}`)
      owners.set(key, call)
    }
  }
  const made = new Set(effects.map(({ call }) => call))
  for (const { call, wasAnswered } of journaled)
    if (wasAnswered && !made.has(call)) wrong.push(`${call} has an answer and was never made`)
  return wrong
}
