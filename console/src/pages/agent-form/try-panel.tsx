import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Field, TextArea } from '../../ui/field.tsx'
import { Panel } from '../../ui/page.tsx'
import { Output } from '../playground/output.tsx'
import { useRuns } from '../playground/use-runs.ts'

/** Gives the agent a task beside its form, as it was saved last. `isChanged`: the form says something else by now. */
export function TryPanel({
  project_id,
  agent_id,
  isChanged,
  saveFirst,
}: {
  project_id: string
  agent_id: string
  isChanged: boolean
  /** Saves what the form says; false where the service refused it. */
  saveFirst: () => Promise<boolean>
}) {
  const [text, setText] = useState('Hello, agent')
  const { runs, begin, stop, isRunning } = useRuns(project_id)
  const run = runs.at(-1)
  const reason = isRunning ? 'It works on the last one' : text.trim() === '' ? 'Write something first' : undefined
  const start = async (): Promise<void> => {
    if (isChanged && !(await saveFirst())) return
    await begin({ agent_id, thread_id: undefined, input: text })
  }
  return (
    <Panel title="Try it">
      <div className="space-y-3 p-4">
        <Field
          label="Message"
          hint={
            isChanged
              ? 'What you changed is saved first: tasks have a version.'
              : 'A task like any other: kept, counted and billed.'
          }
        >
          <TextArea rows={3} value={text} onChange={(event) => setText(event.target.value)} />
        </Field>
        <div className="flex flex-wrap gap-2">
          <Button kind="primary" reason={reason} onClick={() => void start()}>
            {isChanged ? 'Save and try' : 'Try'}
          </Button>
          <Button reason={isRunning ? undefined : 'Nothing runs'} onClick={() => void stop()}>
            Stop
          </Button>
        </div>
        {run && (
          <section aria-label="Output">
            <Output run={run} project_id={project_id} />
          </section>
        )}
      </div>
    </Panel>
  )
}
