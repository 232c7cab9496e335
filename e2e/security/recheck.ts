import { check } from 'recheck'
import { productPatterns } from './patterns.ts'

/**
 * Looks through every regular expression of the product with `recheck`, which proves by automata or looks for a text on which one is slow;
 * ends with 1 where it finds one. Takes about a minute:
 *
 *     node e2e/security/recheck.ts
 */
const timeout_ms = 20_000
const counts = new Map<string, number>()
const patterns = await productPatterns()
for (const { source, flags, where } of patterns) {
  // It knows no sets in classes.
  const found = await check(source, flags.replace('v', 'u'), { timeout: timeout_ms })
  counts.set(found.status, (counts.get(found.status) ?? 0) + 1)
  if (found.status === 'safe') continue
  process.exitCode = 1
  console.log(`${found.status} ${where}: /${source}/${flags}`)
  if (found.status === 'vulnerable') console.log(`    ${found.complexity.summary}: ${found.attack.pattern}`)
}
console.log(`${patterns.length} regular expressions: ${[...counts].map(([what, n]) => `${n} ${what}`).join(', ')}.`)
