import { operations } from '#contract/operations.ts'
import { eachObject, eachSyntaxNode } from './sources.ts'

/** A regular expression of the product, and where it stands. */
export interface Pattern {
  source: string
  flags: string
  where: string
}

/**
 * Every regular expression that the code has as a literal, but for tests and tools, and every `pattern` of the contract's schemas; each
 * once. What the code makes at run time (of names, settings and paths, all of them escaped) is not among them.
 */
export async function productPatterns(): Promise<Pattern[]> {
  const found = new Map<string, Pattern>()
  const add = (pattern: Pattern): void => {
    const name = `/${pattern.source}/${pattern.flags}`
    if (!found.has(name)) found.set(name, pattern)
  }
  await eachSyntaxNode('{contract,server,sdk,cli,console}/src/**/*.{ts,tsx}', (node, where) => {
    if (node.type === 'RegExpLiteral') add({ source: String(node.pattern), flags: String(node.flags), where })
  })
  for (const { id, params, query, body } of operations)
    eachObject([params, query, body], ({ pattern }) => {
      if (typeof pattern === 'string') add({ source: pattern, flags: 'u', where: `contract, ${id}` })
    })
  return [...found.values()]
}
