import assert from 'node:assert/strict'

/** A checker that finds nothing proves nothing: each is shown what it must refuse, for one reason. */
export function refuses(wrong: readonly string[], message: RegExp): void {
  assert.equal(wrong.length, 1, wrong.join('\n'))
  assert.match(wrong[0]!, message)
}
