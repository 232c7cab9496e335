import type { ReactNode } from 'react'
import { isObject } from '#contract/core/merge-patch.ts'
import { differences } from './config-diff.ts'
import { isVariable } from './variables.ts'

/** What differs, member by member: what it was, and what it is. Values of environment variables stay hidden. */
export function DiffTable({ label, before, after }: { label: string; before: unknown; after: unknown }) {
  const found = differences(before, after)
  if (found.length === 0) return <p className="text-soft">No differences.</p>
  return (
    <div className="overflow-x-auto" tabIndex={0}>
      <table className="w-full border-collapse text-sm" aria-label={label}>
        <thead>
          <tr className="border-b border-line text-left text-soft">
            <th scope="col" className="py-1 pr-3 font-medium">
              Field
            </th>
            <th scope="col" className="py-1 pr-3 font-medium">
              Before
            </th>
            <th scope="col" className="py-1 font-medium">
              After
            </th>
          </tr>
        </thead>
        <tbody>
          {found.map(({ path, before, after }) => (
            <tr key={path} className="border-b border-line align-top last:border-0">
              <th scope="row" className="py-1 pr-3 text-left font-normal">
                <code className="break-words">{breakable(path)}</code>
              </th>
              <td className="py-1 pr-3">
                <Value path={path} value={before} tone="text-bad" />
              </td>
              <td className="py-1">
                <Value path={path} value={after} tone="text-good" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A path that is broken between its names, where it does not fit. */
function breakable(path: string): ReactNode[] {
  return path.split(/(?<=[.])/).flatMap((name, at) => (at === 0 ? [name] : [<wbr key={at} />, name]))
}

function Value({ path, value, tone }: { path: string; value: unknown; tone: string }) {
  if (value === undefined || value === null) return <span className="whitespace-nowrap text-soft">not set</span>
  if (isVariable(path))
    return <span className={tone}>{isObject(value) ? Object.keys(value).join(', ') : 'hidden'}</span>
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return <code className={`wrap-anywhere whitespace-pre-wrap ${tone}`}>{text}</code>
}
