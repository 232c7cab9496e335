import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eachSyntaxNode, type SyntaxNode } from './sources.ts'

/** What a name has in it that stands for something to be guessed. */
const guessable = /secret|token|password|signature|csrf|hash|\bmac\b|\bkey\b|verifier|nonce/i
const equals = new Set(['==', '===', '!=', '!=='])

/** Comparisons that stop at the first difference, of values that are no secret or cannot be guessed from outside. */
const harmless: Readonly<Record<string, string>> = {
  'token.clientId === client.clientId': 'names of apps, which are public',
  'secrets.decrypt(secretLabels.webhook, before.secret, before.id) === secret':
    'sent by a caller that may replace the secret; tells an audit entry whether it changed',
  '(await readOrMakeKey(folder, key)) !== key': 'a file of the operator, at the start',
  'callHash(call.name, args) !== call_hash': 'a call of a journal, not a caller',
  '(await ask(`${what} again: `, signal)) !== secret': 'typed twice at the terminal',
  'ours.hash !== hash': 'texts of migrations',
  'known.hash !== hash': 'texts of migrations',
  'fallback === secretKey': 'two settings of the operator, at the start',
  'checksums.entries[name] !== hash': 'sums of an archive that is read whole',
  'content.key_id !== secret_key.key_id': 'a number of a key that tells nothing of it',
  '(await entries.next()) === entryNames.secretKey': 'the name of a file',
  'callOf(one)?.key === key': 'the name of a step within the journal of a task',
  "input['key'] === key": 'the same',
  'of?.get(key) !== value': 'the same, for a call that a request waits for',
  'inputOf(step).tool_call_id === asked.key': 'the same',
  'inputOf(step).tool_call_id === key': 'the same',
  'key === Key': 'the name of an object in a store',
}

test('guessable values are compared in constant time, or found by their hash alone', async () => {
  const [found, constant]: [string[], Set<string>] = [[], new Set()]
  await eachSyntaxNode('server/src/**/*.ts', (node, file, text) => {
    if (node.type === 'CallExpression' && text(node).startsWith('timingSafeEqual(')) constant.add(file)
    if (node.type !== 'BinaryExpression' || !equals.has(String(node.operator))) return
    const sides = [node.left, node.right] as SyntaxNode[]
    if (
      sides.some(isPlain) ||
      sides.some((side) => text(side).endsWith('.length')) ||
      !sides.some((side) => guessable.test(text(side)))
    )
      return
    found.push(text(node))
  })
  assert.deepEqual(
    found.filter((comparison) => !(comparison in harmless)),
    [],
  )
  assert.deepEqual(
    Object.keys(harmless).filter((comparison) => !found.includes(comparison)),
    [],
    'no longer there',
  )
  // Passwords, tokens of forms and leases of tool calls (`isHmac`), signatures of triggers, and the secrets of apps; all else that is presented is looked up by its SHA-256.
  assert.deepEqual([...constant].toSorted(), [
    'server/src/platform/crypto/passwords.ts',
    'server/src/platform/crypto/secrets.ts',
    'server/src/protocols/triggers/verify.ts',
    'server/src/resources/oauth/provider/provider.ts',
  ])
})

/**
 * Whether it is a literal, `undefined`, or the result of a `typeof` or a sign: comparing with it reveals nothing of a
 * caller.
 */
function isPlain({ type, value }: SyntaxNode): boolean {
  return /Literal$|^UnaryExpression$/.test(String(type)) || (type === 'Identifier' && value === 'undefined')
}
