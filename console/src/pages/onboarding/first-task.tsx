import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import type { Agent } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, TextInput } from '../../ui/forms/field.tsx'
import { Status } from '../../ui/status.tsx'

/** Sends a task and shows it arrive. */
export function FirstTask({ project_id, agent }: { project_id: string; agent: Agent }) {
  const [input, setInput] = useState('Hello, agent')
  const [task_id, setTask] = useState<string>()
  const send = useMutation({
    mutationFn: () => Promise.resolve(api.tasks.create(project_id, agent.id, { input })),
    onSuccess: ({ id }) => setTask(id),
  })
  const task = useQuery({
    queryKey: ['project', project_id, 'tasks', 'one', task_id],
    queryFn: () => api.tasks.get(project_id, task_id ?? ''),
    enabled: task_id !== undefined,
    // The stream says when it has changed; this is for a stream that is paused.
    refetchInterval: ({ state }) => (state.data && isFinished(state.data.status) ? false : 1000),
  })
  const data = task.data
  return (
    <form
      className="space-y-3"
      onSubmit={(event) => {
        event.preventDefault()
        send.mutate()
      }}
    >
      <Field label={`Message to ${agent.name}`}>
        <TextInput value={input} onChange={(event) => setInput(event.target.value)} required />
      </Field>
      <Button kind="primary" type="submit" disabled={send.isPending || input.trim() === ''}>
        Send a test task
      </Button>
      <ErrorBox error={send.error ?? task.error} />
      {data && (
        <div role="status" className="space-y-2 rounded-md border border-line bg-quiet p-3">
          <p className="flex flex-wrap items-center gap-2">
            <Status state={data.status} />
            <Link {...paths.task(project_id, data.id)}>Open the task</Link>
          </p>
          {data.output && <p className="break-words whitespace-pre-wrap">{data.output.content}</p>}
          {data.error && (
            <p className="text-bad">
              <code>{data.error.code}</code> {data.error.message}
            </p>
          )}
        </div>
      )}
    </form>
  )
}
