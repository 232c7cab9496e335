import { coverage, inPart } from './coverage.ts'
import { promises, type Finding, type PromiseId } from './fault.ts'

const indent = '    '

/**
 * Results of all faults for each promise, as a table; `fault` says which finding belongs to which fault. A promise that
 * this run shows only in part, or not, names where it is measured: none is omitted.
 */
export function promisesTable(findings: readonly (Finding & { fault: string })[]): string {
  const ids = Object.keys(promises) as PromiseId[]
  return ids
    .flatMap((id) => {
      const own = findings.filter(({ promise }) => promise === id)
      const isWhole = own.some(({ verdict }) => verdict === 'held') && !inPart.has(id)
      return [
        `${id.padEnd(4)}${verdictOf(id, own).padEnd(14)}${promises[id]}`,
        ...own.map(
          ({ fault, what, verdict, why }) =>
            `${indent}${fault.padEnd(4)}${verdict.padEnd(11)} ${what}${why ? `: ${why}` : ''}`,
        ),
        ...(isWhole ? [] : [`${indent}not in this run: ${coverage[id] ?? 'measured by faults alone'}`]),
      ]
    })
    .join('\n')
}

function verdictOf(id: PromiseId, own: readonly Finding[]): string {
  if (own.some(({ verdict }) => verdict === 'broken')) return 'BROKEN'
  if (own.some(({ verdict }) => verdict === 'held')) return inPart.has(id) ? 'held in part' : 'held'
  return own.length > 0 ? 'not judged' : 'not touched'
}
