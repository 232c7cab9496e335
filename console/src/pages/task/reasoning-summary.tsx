import { Prose } from '../../task-parts/prose.tsx'

/** A model's summary of its reasoning, folded: it is no part of the answer. */
export function ReasoningSummary({ text }: { text: string }) {
  return (
    <details className="text-sm">
      <summary className="min-h-6 w-fit cursor-pointer text-soft">Reasoning summary</summary>
      <div className="mt-1 mb-2 border-l-2 border-line pl-3 text-soft">
        <Prose text={text} />
      </div>
    </details>
  )
}
