import { DataTree } from '../../ui/texts/data-tree.tsx'
import type { Task } from '../../task-parts/types.ts'
import { ValueView } from '../../task-parts/value-view.tsx'

/** The data that a task answered with, and the text that it was read from; nothing where it answered with a text alone. */
export function TaskOutput({ output }: { output: Task['output'] }) {
  if (output === null || output.data === null || output.data === undefined) return null
  return (
    <section aria-label="Structured output" className="mt-3 space-y-1">
      <h3 className="text-xs font-semibold tracking-wide text-soft uppercase">Structured output</h3>
      <DataTree label="Data" value={output.data} />
      <details>
        <summary className="min-h-6 w-fit cursor-pointer text-sm text-soft">As text</summary>
        <div className="mt-1">
          <ValueView label="Text" value={output.content} />
        </div>
      </details>
    </section>
  )
}
