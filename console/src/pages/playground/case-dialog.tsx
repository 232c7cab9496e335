import { useState, type FormEvent } from 'react'
import { bounds } from '#contract/core/limits.ts'
import { api } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, TextArea, TextInput } from '../../ui/forms/field.tsx'
import { textOf, type TaskInput } from './input.ts'
import { useRefreshTestCases, type TestCase } from './test-cases.ts'

interface CaseDialog {
  project_id: string
  agent_id: string
  /** The case to change; without one, a new one is kept. */
  changed: TestCase | undefined
  input: TaskInput
  close: () => void
  /** Called with the saved case. */
  saved: (test_case: TestCase) => void
}

/** Keeps what stands in the message as a test case, or gives one another name, input or expectation. */
export function CaseDialog({ project_id, agent_id, changed, input, close, saved }: CaseDialog) {
  const refresh = useRefreshTestCases(project_id, agent_id)
  const [name, setName] = useState(changed?.name ?? '')
  const [expected, setExpected] = useState(changed?.expected ?? '')
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    // The dialog stands in the page's form as far as React is concerned.
    event.stopPropagation()
    setBusy(true)
    setError(undefined)
    const body = { name: name.trim(), input, expected: expected.trim() === '' ? null : expected }
    try {
      const kept = changed
        ? await api.testCases.update(project_id, agent_id, changed.id, body)
        : await api.testCases.create(project_id, agent_id, body)
      await refresh()
      saved(kept)
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <Dialog isOpen close={close} title={changed ? 'Change the test case' : 'Save as a test case'}>
      <form onSubmit={(event) => void submit(event)} className="space-y-4">
        <Field label="Name" hint="A short name for what it tests.">
          <TextInput
            value={name}
            onChange={(event) => setName(event.target.value)}
            maxLength={bounds.test_case_name}
            autoComplete="off"
          />
        </Field>
        <div>
          <p className="mb-1 font-medium">Input</p>
          <p
            tabIndex={0}
            className="max-h-32 overflow-y-auto rounded-md border border-line bg-quiet p-2 break-words whitespace-pre-wrap"
          >
            {textOf(input)}
          </p>
          {changed && textOf(changed.input) !== textOf(input) && (
            <p className="mt-1 text-sm text-soft">The current message. It replaces the saved input.</p>
          )}
        </div>
        <Field label="Expected" hint="What a good answer says. Shown beside the answers. Optional.">
          <TextArea
            rows={4}
            value={expected}
            onChange={(event) => setExpected(event.target.value)}
            maxLength={bounds.test_case_expected}
          />
        </Field>
        <ErrorBox error={error} />
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Cancel</Button>
          <Button
            kind="primary"
            type="submit"
            disabled={isBusy}
            reason={name.trim() === '' ? 'It needs a name' : undefined}
          >
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
