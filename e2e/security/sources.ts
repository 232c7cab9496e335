import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from '@swc/core'

const root = join(import.meta.dirname, '../..')

/** A node of a program's syntax tree: its `type`, and what it consists of. */
export type SyntaxNode = Record<string, unknown>

/** Shows every node of every source of the product that `pattern` finds, but for tests; `text` gives what it says. */
export async function eachSyntaxNode(
  pattern: string,
  look: (node: SyntaxNode, file: string, text: (node: SyntaxNode) => string) => void,
): Promise<void> {
  for await (const file of glob(pattern, { cwd: root })) {
    if (/\.test\.tsx?$/.test(file)) continue
    const bytes = await readFile(join(root, file))
    const program = await parse(bytes.toString(), { syntax: 'typescript', tsx: file.endsWith('x'), target: 'es2024' })
    const start = program.span.start
    eachObject(program, (node) =>
      look(node, file, ({ span }) => {
        const at = span as { start: number; end: number }
        return bytes
          .subarray(at.start - start, at.end - start)
          .toString()
          .replaceAll(/\s+/g, ' ')
      }),
    )
  }
}

/** Every object in a value, at any depth, once. */
export function eachObject(value: unknown, look: (node: SyntaxNode) => void, seen = new Set<unknown>()): void {
  if (typeof value !== 'object' || value === null || seen.has(value)) return
  seen.add(value)
  if (!Array.isArray(value)) look(value as SyntaxNode)
  for (const member of Object.values(value)) eachObject(member, look, seen)
}
