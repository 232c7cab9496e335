import { promises, type Finding, type PromiseId } from './fault.ts'

/** What all faults showed of each promise, as a table to be read; `ran` says which finding is of which fault. */
export function promisesTable(findings: readonly (Finding & { fault: string })[]): string {
  const lines = Object.entries(promises).flatMap(([id, text]) => {
    const own = findings.filter(({ promise }) => promise === (id as PromiseId))
    const worst = own.some(({ verdict }) => verdict === 'broken')
      ? 'BROKEN'
      : own.some(({ verdict }) => verdict === 'held')
        ? 'held'
        : own.length > 0
          ? 'not judged'
          : 'not touched'
    return [
      `${id.padEnd(4)}${worst.padEnd(12)}${text}`,
      ...own.map(
        ({ fault, what, verdict, why }) =>
          `    ${fault.padEnd(4)}${verdict.padEnd(11)} ${what}${why ? `: ${why}` : ''}`,
      ),
    ]
  })
  return lines.join('\n')
}
