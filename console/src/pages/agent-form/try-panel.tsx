import { useState } from 'react'
import { useAttachments, WithAttachments } from '../../task-parts/attachments.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { Button } from '../../ui/button.tsx'
import { Panel } from '../../ui/page.tsx'
import { InputField } from '../playground/input-field.tsx'
import { blankInput, readWithFiles } from '../playground/input.ts'
import { Output } from '../playground/output.tsx'
import { useBlankInput } from '../playground/use-input-schema.ts'
import { useRuns } from '../playground/use-runs.ts'

const hello = 'Hello, agent'

/** Tries the agent beside its form, as it was last saved. `isChanged`: the form has unsaved changes. */
export function TryPanel({
  project_id,
  agent_id,
  input_schema,
  isChanged,
  saveFirst,
}: {
  project_id: string
  agent_id: string
  /** What the form says that a task must be given; undefined where that is a message. */
  input_schema: Record<string, unknown> | undefined
  isChanged: boolean
  /** Saves what the form says; false where the service refused it. */
  saveFirst: () => Promise<boolean>
}) {
  const [text, setText] = useState(() => (input_schema ? blankInput(input_schema) : hello))
  useBlankInput(input_schema, setText, hello)
  const attachments = useAttachments(project_id)
  const read = readWithFiles(text, input_schema, attachments)
  const { runs, begin, stop, isRunning } = useRuns(project_id)
  const run = runs.at(-1)
  const mayNot = useDisabledReason('tasks')
  const reason =
    mayNot ??
    (isRunning
      ? 'The last task is still running'
      : attachments.isUploading
        ? 'A file is being uploaded'
        : 'fault' in read
          ? read.fault
          : undefined)
  const hint = isChanged
    ? 'Your changes are saved as a new version first.'
    : 'Runs as a normal task: stored, counted and billed.'
  const start = async (): Promise<void> => {
    if ('fault' in read) return
    if (isChanged && !(await saveFirst())) return
    await begin({ agent_id, thread_id: undefined, input: read.input })
  }
  const inputField = <InputField schema={input_schema} text={text} hint={hint} rows={3} onChange={setText} />
  return (
    <Panel title="Try it">
      <div className="space-y-3 p-4">
        {input_schema ? (
          inputField
        ) : (
          <WithAttachments project_id={project_id} attachments={attachments}>
            {inputField}
          </WithAttachments>
        )}
        {input_schema && <p className="text-sm text-soft">{hint}</p>}
        <div className="flex flex-wrap gap-2">
          <Button kind="primary" reason={reason} onClick={() => void start()}>
            {isChanged ? 'Save and try' : 'Try'}
          </Button>
          <Button reason={isRunning ? undefined : 'Nothing is running'} onClick={() => void stop()}>
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
