import { TriangleAlert } from 'lucide-react'
import type { CallSettingNote } from '#contract/models/call-setting-notes.ts'

/** What helps at a field, and under it what the chosen models will not take of its value, as it is typed. */
export function CallSettingHint({ hint, notes }: { hint: string; notes: readonly CallSettingNote[] }) {
  return (
    <>
      {hint}
      <span role="status" className="block">
        {notes.map(({ model, note }) => (
          <span key={model} className="mt-1 flex items-start gap-1.5 text-warn">
            <TriangleAlert size={14} aria-hidden className="mt-0.5 shrink-0" />
            <span className="min-w-0 wrap-anywhere">{note}</span>
          </span>
        ))}
      </span>
    </>
  )
}
