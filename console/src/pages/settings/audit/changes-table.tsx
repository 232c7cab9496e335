import type { changesOf } from './changes.ts'

/** What a change made of what, a row each. */
export function ChangesTable({ changes }: { changes: ReturnType<typeof changesOf> }) {
  return (
    <div className="rounded-md border border-line">
      <table aria-label="Changes" className="w-full table-fixed text-sm">
        <thead>
          <tr className="border-b border-line text-left text-soft">
            {['Field', 'Before', 'After'].map((name) => (
              <th key={name} scope="col" className="px-3 py-1.5 font-medium">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {changes.map(({ member, before, after }) => (
            <tr key={member} className="border-b border-line align-top last:border-0">
              <th scope="row" className="px-3 py-1.5 text-left font-normal">
                <code className="break-all">{member}</code>
              </th>
              {[before, after].map((value, side) => (
                <td key={side} className="px-3 py-1.5 wrap-anywhere whitespace-pre-wrap">
                  {value ?? <span className="text-soft">–</span>}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
